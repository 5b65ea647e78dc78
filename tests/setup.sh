# setup.sh: sourced by ./quickstart and ./check; finds what is missing on a Debian machine and installs it.
# Each need is a command, a header or a file with the Debian package that brings it, so that nothing is installed
# where it is there already, whoever put it there.

say() { printf '%s\n' "$*" >&2; }

die() {
	say "$(basename "$0"): $*"
	exit 1
}

missing_packages=

need_command() { # command, package
	command -v "$1" >/dev/null 2>&1 || missing_packages="$missing_packages $2"
}

need_header() { # header, package
	printf '#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdarg.h>\n#include <setjmp.h>\n#include <%s>\n' "$1" |
		${CC:-cc} -E -o /dev/null - 2>/dev/null || missing_packages="$missing_packages $2"
}

need_file() { # file, package
	[ -e "$1" ] || missing_packages="$missing_packages $2"
}

needs_build() {
	need_command gcc gcc
	need_command make make
	need_command autoconf autoconf
	need_command automake automake
	need_command libtoolize libtool
	need_command pkg-config pkg-config
	need_file /usr/include/stdio.h libc6-dev
	need_header zlib.h zlib1g-dev
	need_header jansson.h libjansson-dev
	need_header sqlite3.h libsqlite3-dev
	need_header microhttpd.h libmicrohttpd-dev
	need_header curl/curl.h libcurl4-openssl-dev
	need_header expat.h libexpat1-dev
	need_header snappy-c.h libsnappy-dev
	need_header zstd.h libzstd-dev
	need_header lz4.h liblz4-dev
	need_header dnnl.h libdnnl-dev
	need_header jpeglib.h libjpeg62-turbo-dev
	need_header png.h libpng-dev
	if [ ! -f web/ui/dist/index.html ]; then
		need_command node nodejs
		need_command npm npm
	fi
}

needs_data() {
	need_file /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz dataset-fashion-mnist
}

needs_tests() {
	need_header ucp/api/ucp.h libucx-dev
	need_file /usr/lib/*/pkgconfig/ompi-c.pc libopenmpi-dev
	need_command mpirun openmpi-bin
	need_command srun slurm-client
	need_command slurmctld slurmctld
	need_command slurmd slurmd
	need_header cmocka.h libcmocka-dev
	need_file /usr/include/postgresql/libpq-fe.h libpq-dev
	need_file /usr/sbin/haproxy haproxy
	need_file /usr/sbin/pgbouncer pgbouncer
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing_packages="$missing_packages postgresql"
	need_command sqlite3 sqlite3
	need_command git git
	need_command curl curl
	need_command strace strace
	need_command openssl openssl
	need_command zstd zstd
	need_command python3 python3
	need_file /usr/bin/chromium chromium
	python3 -c 'import venv, ensurepip' 2>/dev/null || missing_packages="$missing_packages python3-venv"
}

# Installs what the needs_* calls found missing; names what cannot be had and stops.
install_missing() {
	[ -n "$missing_packages" ] || return 0
	command -v apt-get >/dev/null 2>&1 || die "please install:$missing_packages (no apt-get here)"
	sudo=
	if [ "$(id -u)" != 0 ]; then
		command -v sudo >/dev/null 2>&1 || die "please install:$missing_packages (neither root nor sudo)"
		sudo=sudo
	fi
	say "installing:$missing_packages"
	log=$(mktemp)
	# shellcheck disable=SC2086
	if ! { $sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing_packages; } >"$log" 2>&1; then
		tail -n 5 "$log" >&2
		die "could not install:$missing_packages (whole log: $log)"
	fi
	rm -f "$log"
	missing_packages=
}

# Builds into $1 with configure arguments $2…; a second call rebuilds only what changed. $build_targets: not everything.
build_into() {
	dir=$1
	shift
	top=$(pwd)
	log=$dir/build.log
	mkdir -p "$dir"
	: >"$log"
	if [ ! -f configure ] || [ configure.ac -nt configure ]; then
		./autogen.sh >>"$log" 2>&1 || { tail -n 20 "$log" >&2; die "autogen.sh failed (whole log: $log)"; }
	fi
	if [ ! -f "$dir/Makefile" ]; then
		(cd "$dir" && "$top/configure" "$@") >>"$log" 2>&1 || { tail -n 20 "$log" >&2; die "configure failed (whole log: $log)"; }
	fi
	make -C "$dir" -j"$(nproc)" ${build_targets-} >>"$log" 2>&1 || { grep -nE 'error|Error' "$log" | head -n 20 >&2; die "make failed (whole log: $log)"; }
}
