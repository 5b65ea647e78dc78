#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An installed tree works after a move: the program finds its backends in ../lib/dptrack and trains a step.
top=$(cd "${builddir:-.}" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$top" || exit 1
${MAKE:-make} -s DESTDIR="$dir/root" install-binPROGRAMS install-pkglibLTLIBRARIES >"$dir/log" 2>&1 || {
	cat "$dir/log"
	exit 1
}
bin=$(dirname "$(find "$dir/root" -name dptrain -type f)")
mv "${bin%/bin}" "$dir/moved"
cd "$dir" || exit 1
moved/bin/dptrain backends >backends || exit 1
for module in "$dir"/moved/lib/dptrack/*.so; do
	[ -e "$module" ] || continue
	name=$(basename "$module" .so)
	! grep "^${name#dptrain_} .*not installed" backends || exit 1
done
moved/bin/dptrain --synthetic --model resnet20 --image-size 8 --in-channels 1 --classes 10 -b 4 --threads 1 --max-steps 1 \
	--report-to none --runs-dir runs >log 2>&1 || { cat log; exit 1; }
moved/bin/dptrack ls --logdir runs >table 2>&1 || { cat table; exit 1; }
grep -q finished table || { cat table log; exit 1; }
echo "a moved tree trains with: $(tr '\n' ';' <backends | cut -c1-200)"
