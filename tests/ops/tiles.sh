#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Attention with plain loops instead of tile registers (trainer/backends/cpu/amx.h), compared with ref. Where the
# processor has such registers, ops_test itself uses them.
test=${builddir:-.}/tests/ops/ops_test
if ! grep -q avx512_bf16 /proc/cpuinfo; then
	echo "this processor has no AVX512_BF16: attention does not use tiles here"
	exit 77
fi
if [ ! -x "$test" ]; then
	echo "tests/ops/ops_test is not built (no cmocka)"
	exit 77
fi
DPTRAIN_CPU_TILES=emulate exec "$test" attention
