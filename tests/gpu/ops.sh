#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every op on the fake device in bf16, threads and blocks in descending order. `ops.sh types`: in every type; in
# full: in every type, in three orders, with equal bits in each; with DPTRAIN_GPU=1 in every type on the machine's GPU.
cd "${builddir:-.}" || exit 1
run() { # test patterns…, the slowest first; one process per core
	rm -f ops-gpu.log.*
	printf '%s\n' "$@" | xargs -d '\n' -n 1 -P "$(nproc)" sh -c \
		'tests/ops/ops_test "$1" >"ops-gpu.log.$$" 2>&1 || touch ops-gpu.log.failed' run
	if [ -f ops-gpu.log.failed ]; then
		grep -hvE 'RUN|OK' ops-gpu.log.* | head -n 40
		exit 1
	fi
	for log in ops-gpu.log.*; do
		grep -q 'OK .* on cuda' "$log" || {
			echo "no op was tested: $(grep 'left out' "$log" | grep cuda)"
			exit 77
		}
	done
}
trap 'rm -f ops-gpu.log* ops-gpu.bits.*' EXIT
if [ "${DPTRAIN_GPU-}" = 1 ]; then
	run 'cuda in f64' 'cuda in f32' 'cuda in bf16' 'cuda in f16'
	exit
fi
DPTRAIN_BACKEND_PATH=$PWD/tests/fakes/cuda/.libs
XDG_CACHE_HOME=/dev/null # every run queries the fake libraries
export DPTRAIN_BACKEND_PATH XDG_CACHE_HOME
[ -f "$DPTRAIN_BACKEND_PATH/dptrain_cuda.so" ] || {
	echo "the fake device was not built (no CUDA toolkit)"
	exit 77
}
orders=down
[ "${DPT_TEST_FULL-}" = 1 ] && orders='down up 7'
if [ "$#${DPT_TEST_FULL-}" = 0 ]; then
	set -- 'cuda in bf16'
else
	set -- 'cuda in f64' 'cuda in f32' 'cuda in bf16' 'cuda in f16'
fi
rm -f ops-gpu.bits.*
for DPTRAIN_FAKE_ORDER in $orders; do
	OPS_TEST_BITS=$PWD/ops-gpu.bits.$DPTRAIN_FAKE_ORDER
	export DPTRAIN_FAKE_ORDER OPS_TEST_BITS
	run "$@"
	# Products, convolutions and attention with our kernels, as without the libraries.
	export DPTRAIN_FAKE_CUBLASLT_VERSION=120000 DPTRAIN_FAKE_CUDNN_VERSION=80000
	run 'conv_dgrad on cuda in bf16' 'conv on cuda in f16' 'conv_wgrad on cuda in bf16' 'lmhead on cuda in f16' \
		'attention_grad on cuda in f16' 'attention_grad on cuda in bf16' 'attention on cuda in f16' 'attention on cuda in bf16' \
		'linear on cuda in bf16' 'linear_dgrad on cuda in f32' 'linear_wgrad on cuda in f16'
	unset DPTRAIN_FAKE_CUBLASLT_VERSION DPTRAIN_FAKE_CUDNN_VERSION
	sort -o "$OPS_TEST_BITS" "$OPS_TEST_BITS"
	diff ops-gpu.bits.down "$OPS_TEST_BITS" >ops-gpu.log || {
		echo "threads in order $DPTRAIN_FAKE_ORDER give other bits than in descending order: a race"
		head -n 20 ops-gpu.log
		exit 1
	}
done
cases=$(wc -l <ops-gpu.bits.down)
echo "ops: $cases cases on the fake device, threads in the orders: $orders"
