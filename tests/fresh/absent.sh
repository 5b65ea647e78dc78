#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# absent.sh REQUIRED PACKAGE…: removes packages from the root in which it runs. A package that one of REQUIRED (a list
# of words) depends on stays: its headers are removed, and pkg-config does not find it.
set -e
required=$1
shift

# shellcheck disable=SC2086
apt-cache depends --recurse --important --installed $required | grep '^[a-z]' >/tmp/needed

hide() { # package
	dpkg -L "$1" | grep '\.h$' | xargs -r rm -f
	dpkg -L "$1" | sed -n 's|.*/pkgconfig/\(.*\)\.pc$|\1|p' >>/etc/hidden-modules
	cat >/usr/local/bin/pkg-config <<-'END'
		#!/bin/sh
		while read -r module; do
			case " $* " in *" $module "*) exit 1 ;; esac
		done </etc/hidden-modules
		exec /usr/bin/pkg-config "$@"
	END
	chmod +x /usr/local/bin/pkg-config
}

removed=
for package; do
	if grep -qx "$package" /tmp/needed; then
		hide "$package"
	else
		removed="$removed $package"
	fi
done
[ -z "$removed" ] || apt-get purge -qq -y $removed >/tmp/purged || { cat /tmp/purged; exit 1; }
