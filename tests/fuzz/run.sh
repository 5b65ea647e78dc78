#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The long run: builds the targets with clang, libFuzzer and the address and undefined-behaviour sanitizers in build-fuzz/
# and lets each search for new inputs, starting with its corpus.
#	tests/fuzz/run.sh [SECONDS [TARGET…]]        without arguments: 600 seconds each, all targets
# Words of each target: tests/fuzz/dict. Findings: build-fuzz/found/TARGET/ (a crash or an input that takes longer than
# a second is reported with its file). tests/fuzz/run.sh merge [TARGET…] copies the few inputs with the best coverage
# to tests/fuzz/corpus.
set -e
cd "$(dirname "$0")/../.."
top=$(pwd)
all="journal request grammar decode range gzip safetensors state picture tar tfrecord lmdb parquet arrow lines json_member shard_list tokenizer chat_template"
seconds=${1:-600}
[ $# -eq 0 ] || shift
targets=${*:-$all}
# clang 14, Debian 12's, has no _Float16 on x86-64.
for clang in clang clang-22 clang-19 clang-16 ''; do
	! echo '_Float16 half;' | $clang -c -x c -o /dev/null - 2>/dev/null || break
done
[ "$clang" ] || { echo "fuzz: no clang 15 or newer is installed (Debian 12: clang-19 and libclang-rt-19-dev)"; exit 77; }
mkdir -p build-fuzz
if [ ! -f build-fuzz/Makefile ]; then
	[ -f configure ] || ./autogen.sh >/dev/null
	(cd build-fuzz && "$top/configure" -q CC="$clang" CFLAGS='-O1 -g' --enable-sanitizers=fuzzer --with-cuda=no --with-onednn=no --without-ui \
		--disable-shared --enable-static)
fi

# Names are the beginning of an input's SHA-1; inputs with other names were written by hand and are kept.
merge() { # target
	rm -rf "build-fuzz/merged/$1"
	mkdir -p "build-fuzz/merged/$1"
	"build-fuzz/tests/fuzz/$1" -merge=1 -set_cover_merge=1 -max_len=1500 "build-fuzz/merged/$1" "tests/fuzz/corpus/$1" "build-fuzz/found/$1" 2>/dev/null
	find "tests/fuzz/corpus/$1" -name '????????????' ! -name '*[!0-9a-f]*' -delete
	for input in "build-fuzz/merged/$1"/*; do
		cp "$input" "tests/fuzz/corpus/$1/$(sha1sum "$input" | cut -c1-12)"
	done
}

for target in $targets; do
	make -s -C build-fuzz "tests/fuzz/$target"
	mkdir -p "build-fuzz/found/$target"
	if [ "$seconds" = merge ]; then
		merge "$target"
		continue
	fi
	echo "== $target, $seconds s"
	words=
	[ ! -f "tests/fuzz/dict/$target" ] || words=-dict=$top/tests/fuzz/dict/$target
	(cd "build-fuzz/found/$target" && "$top/build-fuzz/tests/fuzz/$target" -max_total_time="$seconds" -timeout=10 -report_slow_units=1 -rss_limit_mb=4096 -max_len=4000 -print_final_stats=1 \
		$words . "$top/tests/fuzz/corpus/$target" 2>&1 | tail -n 25)
done
