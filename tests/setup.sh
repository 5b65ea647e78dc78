# SPDX-License-Identifier: Apache-2.0
# setup.sh: sourced by ./quickstart and ./check; installs missing packages on Debian, configures, builds, shows progress.
# Each need is a command, a header or a file with the Debian package that contains it. A need that is met in another way
# installs nothing.

# Debian's users do not have these on PATH, but slurmctld, haproxy and others are there.
PATH=$PATH:/usr/sbin:/sbin

say() { printf '%s\n' "$*" >&2; }

die() {
	clear_line
	say "$(basename "$0"): $*"
	exit 1
}

clear_line() {
	[ ! -t 2 ] || printf '\r\033[K' >&2
}

# A step of the work: on a terminal one line that is rewritten, elsewhere a line at its start, every 10 % and at its end.
begin_step() { # title
	step_title=$1 step_percent=0 step_began=$(date +%s)
	if [ -t 2 ]; then
		printf '%s ...' "$1" >&2
	else
		say "$1"
	fi
}

show_percent() { # 0 to 100; never goes back
	if [ -t 2 ] && [ "$1" -gt "$step_percent" ]; then
		printf '\r\033[K%s: %d %%' "$step_title" "$1" >&2
		step_percent=$1
	elif [ "$1" -ge $((step_percent + 10)) ]; then
		step_percent=$(($1 - $1 % 10))
		say "$step_title: $step_percent %"
	fi
}

end_step() {
	clear_line
	say "$step_title: done in $(($(date +%s) - step_began)) s"
}

# Runs a command, appends its output to a log and pipes it into a function that shows its progress. Returns its status.
follow() { # function, log, command...
	reader=$1 reader_log=$2
	shift 2
	reader_status=$({ { "$@" 2>&1 3>&-; echo $? >&3; } | tee -a "$reader_log" | "$reader" >&2; } 3>&1)
	return "${reader_status:-130}" # empty after ctrl-C
}

missing_packages= wanted_headers=

need_command() { # command, package
	command -v "$1" >/dev/null 2>&1 || missing_packages="$missing_packages $2"
}

need_header() { # header, package
	wanted_headers="$wanted_headers$1 $2
"
}

# Adds the packages of all headers that the compiler cannot find; without a compiler, of all headers.
find_missing_headers() {
	[ -n "$wanted_headers" ] || return 0
	missing_headers=$(printf %s "$wanted_headers" | while read -r header package; do
		printf '#if !__has_include(<%s>)\nmissing %s\n#endif\n' "$header" "$package"
	done | ${CC:-cc} -E -P - 2>/dev/null) || missing_headers=$wanted_headers
	# shellcheck disable=SC2086
	set -- $missing_headers
	while [ $# -gt 1 ]; do
		missing_packages="$missing_packages $2"
		shift 2
	done
	wanted_headers=
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
	need_header cjose/cjose.h libcjose-dev
	need_header snappy-c.h libsnappy-dev
	need_header zstd.h libzstd-dev
	need_header lz4.h liblz4-dev
	need_header yaml.h libyaml-dev
	need_file /usr/include/hdf5/serial/hdf5.h libhdf5-dev
	need_header dnnl.h libdnnl-dev
	need_header jpeglib.h libjpeg62-turbo-dev
	need_header png.h libpng-dev
	need_header webp/demux.h libwebp-dev
	need_header pcre2.h libpcre2-dev
	need_header utf8proc.h libutf8proc-dev
	need_file /usr/include/*/tiffio.h libtiff-dev
	need_header ucp/api/ucp.h libucx-dev
	need_command curl curl
	need_file /etc/ssl/certs/ca-certificates.crt ca-certificates
	[ -f web/ui/dist/index.html ] || need_command node nodejs
}

needs_data() {
	need_file /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz dataset-fashion-mnist
}

needs_tests() {
	need_command g++ g++ # the compiler that nvcc calls
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
	need_command debootstrap debootstrap
	need_command npm npm
	need_command strace strace
	need_command ip iproute2
	need_command openssl openssl
	need_command zstd zstd
	need_command python3 python3
	need_file /usr/bin/chromium chromium
	python3 -c 'import venv, ensurepip' 2>/dev/null || missing_packages="$missing_packages python3-venv"
}

# Shows the progress in apt-get's status lines: dlstatus for downloads, pmstatus for packages.
show_apt() {
	while IFS=: read -r kind _ percent _; do
		case $kind in
		dlstatus) show_percent "$((${percent%%.*} / 2))" ;;
		pmstatus) show_percent "$((50 + ${percent%%.*} / 2))" ;;
		esac
	done
}

run_apt_get() { # root or sudo...
	"$@" env apt-get update -qq &&
		"$@" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
			-o APT::Status-Fd=1 -o DPkg::Lock::Timeout=300 $missing_packages </dev/null
}

# Installs what the needs_* calls found missing. Without the rights to do so it prints the command for root and exits.
install_missing() {
	find_missing_headers
	[ -n "$missing_packages" ] || return 0
	by_hand="run as root: apt-get update && apt-get install --no-install-recommends$missing_packages"
	command -v apt-get >/dev/null 2>&1 ||
		die "cannot install packages without apt-get: install these or their equivalents:$missing_packages"
	sudo=
	if [ "$(id -u)" != 0 ]; then
		command -v sudo >/dev/null 2>&1 || die "cannot install packages without sudo: $by_hand"
		sudo=sudo
		[ -t 0 ] || sudo='sudo -n'
		$sudo env true || die "cannot install packages, sudo is refused: $by_hand"
	fi
	log=$(mktemp)
	say "missing packages:$missing_packages"
	begin_step "installing packages"
	follow show_apt "$log" run_apt_get $sudo || {
		clear_line
		grep -v '^[dp][lm]status:' "$log" | tail -n 5 >&2
		die "cannot install packages (log: $log): $by_hand"
	}
	end_step
	rm -f "$log"
	missing_packages=
}

# Prints a checksum of what configure looks for: programs, pkg-config's files and oneDNN's headers with their sizes and times.
describe_installed() {
	pkgconfig_folders=${PKG_CONFIG_PATH-}:${PKG_CONFIG_LIBDIR-$(pkg-config --variable pc_path pkg-config)}
	# shellcheck disable=SC2046
	ls -lL --full-time $(for tool in "${CC:-cc}" c++ node curl nvcc; do command -v "$tool"; done) \
		/usr/include/dnnl*.h /usr/include/*/dnnl*.h $(echo "$pkgconfig_folders" | tr : ' ') 2>/dev/null | cksum
}

# Configures $1 with arguments $2... if it is not configured, if the arguments differ from the last ones, or if other packages are
# installed. Without arguments, and where configure was run by hand, the former arguments are kept.
configure_into() {
	dir=$1 log=$1/build.log top=$(pwd)
	shift
	mkdir -p "$dir"
	: >"$log"
	if [ ! -f configure ] || [ -n "$(find configure.ac Makefile.am m4 schema tests tracker trainer web \
		\( -name configure.ac -o -name Makefile.am -o -name local.mk -o -name '*.m4' \) -newer configure -print -quit)" ]; then
		begin_step "preparing configure"
		./autogen.sh >>"$log" 2>&1 || die_of_log 20 "autogen.sh failed"
		end_step
	fi
	arguments='by hand' installed='' installed_now=$(describe_installed)
	[ ! -f "$dir/configured" ] || { read -r arguments && read -r installed; } <"$dir/configured"
	if [ ! -f "$dir/Makefile" ] || { [ $# -gt 0 ] && [ "$arguments" != "$*" ] && [ "$arguments" != 'by hand' ]; }; then
		begin_step "configuring"
		arguments=$*
		(cd "$dir" && CONFIG_SHELL=/bin/sh /bin/sh "$top/configure" "$@") >>"$log" 2>&1 || die_of_log 20 "configure failed"
	elif [ "$installed" != "$installed_now" ] || [ configure -nt "$dir/config.status" ]; then
		begin_step "configuring again"
		(cd "$dir" && ./config.status --recheck && ./config.status) >>"$log" 2>&1 || die_of_log 20 "configure failed"
	else
		return 0
	fi
	printf '%s\n' "$arguments" "$installed_now" >"$dir/configured"
	end_step
}

die_of_log() { # lines, message
	clear_line
	tail -n "$1" "$log" >&2
	die "$2 (log: $log)"
}

# Shows how many of the $step_count steps make has started.
show_make() {
	begun=0
	while IFS= read -r line; do
		case $line in
		'  '[A-Z]*)
			begun=$((begun < step_count ? begun + 1 : begun))
			show_percent "$((100 * begun / step_count))"
			;;
		esac
	done
}

# Makes targets in a configured folder; prints nothing if all are up to date. config.h is always older than Automake's stamp for
# it, so make -q and -n would list everything that includes it. They ignore it (-o) once the targets have been made with it.
make_in() { # folder, title, targets...
	dir=$1 log=$1/build.log title=$2
	shift 2
	made=$dir/made-$(echo "$*" | tr -c 'a-z\n' -)
	old_config=
	[ ! "$made" -nt "$dir/config.h" ] || old_config='-o config.h'
	# shellcheck disable=SC2086
	[ -z "$old_config" ] || ! make -C "$dir" -q $old_config "$@" >/dev/null 2>&1 || return 0
	begin_step "$title"
	# shellcheck disable=SC2086
	step_count=$(make -C "$dir" -n $old_config V=0 "$@" 2>/dev/null | grep -c '^echo "  [A-Z]')
	follow show_make "$log" make -C "$dir" -j$(($(nproc) + 1)) V=0 "$@" || {
		clear_line
		grep -nE 'error|Error' "$log" | head -n 20 >&2
		die "make failed (log: $log)"
	}
	end_step
	: >"$made"
}

# Builds into $1 with configure arguments $2...; a second call builds only what changed. $build_targets: not everything.
build_into() {
	configure_into "$@"
	# shellcheck disable=SC2086
	make_in "$1" "building $1" ${build_targets:-all}
}
