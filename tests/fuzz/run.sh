#!/bin/sh
# The long run: builds the targets with clang, libFuzzer and the address and undefined-behaviour sanitizers in build-fuzz/
# and lets each look for new inputs, starting from its corpus.
#	tests/fuzz/run.sh [SECONDS [TARGET…]]        600 seconds each and all targets without arguments
# What is found: build-fuzz/found/TARGET/ (a crash names its file). tests/fuzz/run.sh merge puts the few inputs that
# cover most into tests/fuzz/corpus.
set -e
cd "$(dirname "$0")/../.."
top=$(pwd)
all="journal json grammar decode range gzip safetensors state picture"
seconds=${1:-600}
[ $# -eq 0 ] || shift
targets=${*:-$all}
command -v clang >/dev/null || { echo "fuzz: clang is not installed (Debian: clang)"; exit 77; }
mkdir -p build-fuzz
if [ ! -f build-fuzz/Makefile ]; then
	[ -f configure ] || ./autogen.sh >/dev/null
	(cd build-fuzz && "$top/configure" -q CC=clang CFLAGS='-O1 -g' --enable-sanitizers=fuzzer --with-cuda=no --with-onednn=no --without-ui \
		--disable-shared --enable-static)
fi
for target in $targets; do
	make -s -C build-fuzz "tests/fuzz/$target"
	mkdir -p "build-fuzz/found/$target"
	if [ "$seconds" = merge ]; then
		mkdir -p "build-fuzz/merged/$target"
		"build-fuzz/tests/fuzz/$target" -merge=1 -max_len=2000 "build-fuzz/merged/$target" "tests/fuzz/corpus/$target" "build-fuzz/found/$target" 2>/dev/null
		continue
	fi
	echo "== $target, $seconds s"
	(cd "build-fuzz/found/$target" && "$top/build-fuzz/tests/fuzz/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
		. "$top/tests/fuzz/corpus/$target" 2>&1 | tail -n 25)
done
