#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Exports of shared objects: a module of a backend or a transport exports one versioned symbol, libdptrack only
# dptrack_*.
cd "${builddir:-.}" || exit 1
bad=0 seen=0
for so in .libs/dptrain_*.so .libs/libdptrack.so; do
	[ -f "$so" ] || continue
	seen=$((seen + 1))
	case $so in
	*libdptrack.so) want='^dptrack_' ;;
	*) want='^dptrain_(backend_v1|link_v4)$' ;;
	esac
	# Version nodes (type A) and symbols added by the sanitizers' runtimes do not count.
	stray=$(nm -D --defined-only "$so" | awk '$2 != "A" { print $3 }' | sed 's/@.*//' | grep -vE "$want|^_init$|^_fini$|^__(asan|ubsan|odr_asan)")
	[ -z "$stray" ] || { echo "$so exports: $stray"; bad=1; }
done
[ $seen -gt 0 ] || { echo "exports: no shared object was built"; exit 77; }
[ $bad = 0 ] && echo "exports: $seen shared objects export what they should"
exit $bad
