#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The server, the store and the commands under a sanitizer: their tests, then everything at once for a while, over HTTP and
# over TLS.
#	tests/sanitizers.sh thread|address [SECONDS]       SECONDS (60) of tests/api/load.py for each
# Builds in build-thread or build-address. A report of any process, also of one that was killed later, is printed and
# fails.
set -e
cd "$(dirname "$0")/.."
case ${1-} in
thread) kind=thread ;;
address) kind=yes ;;
*) sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
. tests/setup.sh
dir=$(pwd)/build-$1
reports=$dir/reports
build_targets=web-programs
build_into "build-$1" --enable-sanitizers=$kind --with-cuda=no --without-ui CFLAGS='-O1 -g -Werror'
rm -rf "$reports"
mkdir -p "$reports"
export TSAN_OPTIONS="log_path=$reports/thread second_deadlock_stack=1 die_after_fork=0" UBSAN_OPTIONS="log_path=$reports/undefined print_stacktrace=1"
export ASAN_OPTIONS="log_path=$reports/address intercept_tls_get_addr=0"
failed=0
make -C "build-$1" check-web || failed=1
for way in '' tls; do
	srcdir=$(pwd) builddir=$dir DPT_TEST_LIMIT=$((${2:-60} * 3 + 300)) python3 tests/limit.py \
		python3 tests/api/load.py "${2:-60}" $way || failed=1
done
cat "$reports"/* 2>/dev/null && failed=1
[ $failed = 0 ] && echo "sanitizers: no report of $1"
exit $failed
