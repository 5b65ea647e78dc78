#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program's own bf16 convolutions (trainer/backends/cpu/bf16_conv) compared with ref on any processor: plain C
# emulates tile registers, then dot products.
test=${builddir:-.}/tests/ops/ops_test
if [ ! -x "$test" ]; then
	echo "tests/ops/ops_test is not built (no cmocka)"
	exit 77
fi
for op in conv conv_dgrad conv_wgrad; do
	DPTRAIN_CPU_TILES=emulate "$test" "$op on cpu in bf16" || exit 1
	DPTRAIN_CPU_DOTS=emulate "$test" "$op on cpu in bf16" || exit 1
done
