#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Units: systemd-analyze rates the exposure of each at 2.0 or less, of 10.
command -v systemd-analyze >/dev/null && systemd-analyze --help | grep -q -e --offline ||
	{ echo "units: systemd-analyze of 250 or newer is not installed (Debian: systemd)"; exit 77; }
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT || exit 1
bad=0
for unit in "$srcdir/web/deploy/debian/dptrack.service" "$srcdir/web/deploy/dptrack@.service"; do
	copy=$folder/$(basename "$unit" | sed 's/@/@6007/')
	cp "$unit" "$copy"
	systemd-analyze --no-pager security --offline=true --threshold=20 "$copy" >"$folder/said" 2>&1 || bad=1
	tail -n 1 "$folder/said"
done
exit $bad
