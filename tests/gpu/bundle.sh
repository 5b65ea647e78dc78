#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bundle.sh: what `make gpu-bundle` makes: everything that tests/gpu/all needs on a machine with a GPU but without
# compilers and network, in one file of at most 32 MiB: stripped programs and module, the Debian libraries that they
# are linked with, scripts, references. Unpacked, it has the tree's folders. $srcdir and $builddir set the source and
# build folders.
set -e
limit=$((32 << 20))
name=dptrain-gpu-bundle
programs='dptrain dptrack .libs/dptrain_cuda.so tests/ops/ops_test tests/gpu/conformance'
scripts='tests/gpu/all tests/gpu/device.py tests/gpu/nets.py tests/gpu/ranks.py tests/gpu/ops.sh tests/gpu/peer.py
	tests/gpu/whole.py tests/gpu/blame.py tests/ports.py tests/train/helper.py tests/train/nonfinite.py tests/train/stops.py tests/train/strategies/bytes.py tests/bench/parts/pytorch_step.py LICENSE'

command -v zstd >/dev/null || { echo "make gpu-bundle needs zstd; install it" >&2; exit 1; }
work=$(mktemp -d "$builddir/$name.XXXXXX")
trap 'rm -rf "$work"' EXIT
top=$work/$name

for file in $scripts; do
	mkdir -p "$top/$(dirname "$file")"
	cp "$srcdir/$file" "$top/$file"
done
mkdir -p "$top/tests/train/reference" "$top/build/lib"
cp "$srcdir"/tests/train/reference/*.json "$srcdir"/tests/train/reference/*.safetensors "$top/tests/train/reference"
for file in $programs; do
	[ -f "$builddir/$file" ] || { echo "make gpu-bundle: $file was not built" >&2; exit 1; }
	mkdir -p "$top/build/$(dirname "$file")"
	strip -o "$top/build/$file" "$builddir/$file"
	# except libc, which is the machine's
	ldd "$builddir/$file" | awk '$3 ~ /^\// && $1 !~ /^(libc|libm|libpthread|libdl|librt)\.so/ { print $3 }' |
		while read -r library; do cp -Lu "$library" "$top/build/lib"; done
done
{ git -C "$srcdir" describe --always --dirty --abbrev=12 2>/dev/null || echo unknown; } >"$top/commit"

tar -C "$work" --owner=0 --group=0 --sort=name -cf - "$name" | zstd -q -10 -f -o "$work/all"
bytes=$(wc -c <"$work/all")
[ "$bytes" -le $limit ] || { echo "make gpu-bundle: $bytes bytes, more than $limit" >&2; exit 1; }
mv "$work/all" "$builddir/$name.tar.zst"
echo "$builddir/$name.tar.zst: $bytes bytes"
