#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make install DESTDIR, then a program outside the tree is built with the installed library by pkg-config and records a
# run; only dptrack_* is exported, and the library needs only libc and zlib to start.
set -e
top=${srcdir:-.}
cd "${builddir:-.}"
command -v pkg-config >/dev/null || { echo "skipped: no pkg-config"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
${MAKE:-make} -s DESTDIR="$dir/root" install-libLTLIBRARIES install-includeHEADERS install-pkgconfigDATA >"$dir/log" 2>&1 || {
	cat "$dir/log"
	exit 1
}
pc=$(find "$dir/root" -name dptrack.pc)
lib=$(dirname "$(find "$dir/root" -name 'libdptrack.so')")
export PKG_CONFIG_PATH="$(dirname "$pc")" PKG_CONFIG_SYSROOT_DIR="$dir/root"
cp "$top/tests/tracker/twenty_lines.c" "$dir/"
cd "$dir"
cflags=$(pkg-config --cflags dptrack)
libs=$(pkg-config --libs dptrack)
flags=$(sed -n 's/^SANITIZER_FLAGS = //p' "$OLDPWD/Makefile")
# shellcheck disable=SC2086
${CC:-cc} -std=c11 -Wall -Wextra -Werror $flags $cflags twenty_lines.c -o twenty $libs
unset DPTRACK_URL
LD_LIBRARY_PATH=$lib ./twenty
PYTHONPATH="$(cd "$OLDPWD" && cd "$top" && pwd)/tests/tracker" python3 - "$dir/runs/outside" <<'PY'
import glob, journal, sys
j, = journal.journals(glob.glob(sys.argv[1] + '/twenty-????????')[0])
assert j.series('train/loss') == [(s, 1.0 / s) for s in range(1, 101)] and j.params == {'lr': 0.1} and j.statuses == [(1, '')]
PY
stray=$(nm -D --defined-only "$lib/libdptrack.so" | awk '$3 !~ /^dptrack_|^DPTRACK_/ {print $3}')
[ -z "$stray" ] || { echo "exported besides dptrack_*: $stray"; exit 1; }
! nm "$lib/libdptrack.so" | grep ' mem_' || { echo "allocates like a program: tracker/mem"; exit 1; }
needed=$(readelf -d "$lib/libdptrack.so" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE '^(libc\.so|libz\.so|libm\.so|lib(a|ub)san|ld-linux|libpthread|libdl|librt)' || true)
[ -z "$needed" ] || { echo "needed at start: $needed"; exit 1; }
# The same header works for C++ programs.
if command -v c++ >/dev/null; then
	printf '#include <dptrack.h>\nint main() { return dptrack_run_close(nullptr, DPTRACK_FINISHED); }\n' >cpp.cc
	# shellcheck disable=SC2086
	c++ -Wall -Wextra -Werror $flags $cflags cpp.cc -o cpp $libs && LD_LIBRARY_PATH=$lib ./cpp
fi
echo "installed: 100 points recorded by a program outside the tree"
