#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fetch.sh NAME PIN…: prints the folder `nvidia` of NVIDIA's Python wheels of those versions, from PyPI: downloaded
# once, cached in $XDG_CACHE_HOME or ~/.cache. Exits with 77 and the reason if they are unavailable.
name=$1
shift
top=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/dptrack
dir=$top/$name-$(printf '%s' "$*" | cksum | cut -d' ' -f1)
if [ ! -d "$dir" ]; then
	mkdir -p "$top" && new=$(mktemp -d "$top/$name.XXXXXX") || exit 77
	trap 'rm -rf "$new"' EXIT
	if ! python3 -m venv "$new/venv" >"$new/log" 2>&1 ||
		! "$new/venv/bin/pip" download -q --no-deps --disable-pip-version-check --timeout 20 --retries 1 \
			-d "$new/wheels" "$@" >"$new/log" 2>&1; then
		echo "no packages of CUDA: $(tail -n 1 "$new/log")" >&2
		exit 77
	fi
	for wheel in "$new"/wheels/*.whl; do
		python3 -m zipfile -e "$wheel" "$new" || exit 77
	done
	find "$new/nvidia" -path '*/bin/*' -type f -exec chmod +x {} +
	rm -rf "$new/wheels" "$new/venv" "$new/log"
	mv -T "$new" "$dir" 2>/dev/null || [ -d "$dir" ] || exit 77 # another process was faster
fi
echo "$dir/nvidia"
