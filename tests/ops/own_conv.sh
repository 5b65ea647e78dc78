#!/bin/sh
# Own bf16 convolutions (trainer/backends/cpu/bf16_conv) against ref on any processor: plain C stands in for tile
# registers, then for dot products.
test=${builddir:-.}/tests/ops/ops_test
if [ ! -x "$test" ]; then
	echo "tests/ops/ops_test is not built (no cmocka)"
	exit 77
fi
for op in conv conv_dgrad conv_wgrad; do
	DPTRAIN_CPU_TILES=emulate "$test" "$op on cpu in bf16" || exit 1
	DPTRAIN_CPU_DOTS=emulate "$test" "$op on cpu in bf16" || exit 1
done
