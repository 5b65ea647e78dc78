#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs.sh TARGET BUILD: ends with one line that names all that `make TARGET` (wheels, static, deb, image or release) lacks on this machine.
build=$(realpath "$2")
cd "$(dirname "$0")/../.." || exit 1
. tests/setup.sh
lacks=

need_static() {
	need_command python3 python3
	python3 -c 'import venv, ensurepip' 2>/dev/null || missing_packages="$missing_packages python3-venv"
	need_command dpkg-source dpkg-dev
	need_command strip binutils
	need_command tclsh tcl
}

need_wheels() {
	need_static
	need_command pkg-config pkg-config
	while read -r archive package; do # that dptrain is linked with
		need_file "/usr/lib/x86_64-linux-gnu/lib$archive.a" "$package"
	done <<-END
		jansson libjansson-dev
		yaml libyaml-dev
		pcre2-8 libpcre2-dev
		utf8proc libutf8proc-dev
		jpeg libjpeg62-turbo-dev
		png libpng-dev
		webp libwebp-dev
		tiff libtiff-dev
		snappy libsnappy-dev
		zstd libzstd-dev
		lz4 liblz4-dev
		z zlib1g-dev
	END
}

need_deb() {
	need_command python3 python3
	need_file /usr/share/build-essential/list build-essential
	need_command dh debhelper
	need_command dh_python3 dh-python
	need_command lintian lintian
}

need_image() {
	need_command python3 python3
	need_command debootstrap debootstrap
	need_command umoci umoci
	[ "$(id -u)" = 0 ] || lacks="$lacks; root: run it with sudo"
	ls "$build"/release/deb/dptrack_*_amd64.deb >/dev/null 2>&1 || lacks="$lacks; a package in $build/release/deb: run make deb"
}

case $1 in
release) need_wheels && need_deb ;;
*) "need_$1" ;;
esac
find_missing_headers
packages=$(for package in $missing_packages; do echo "$package"; done | sort -u | tr '\n' ' ')
[ -z "$packages" ] || lacks="$lacks; packages: apt-get install ${packages% }"
[ -z "$lacks" ] || { say "make $1: missing ${lacks#; }"; exit 1; }
