#!/bin/sh
# Every op on the fake device in bf16, threads and blocks from the last to the first. `ops.sh full`: in every type, in
# three orders (five minutes); with DPTRAIN_GPU=1 in every type on the GPU that is there.
cd "${builddir:-.}" || exit 1
run() { # words of the tests…
	for words; do
		tests/ops/ops_test "$words" >ops-gpu.log 2>&1 || {
			grep -vE 'RUN|OK' ops-gpu.log | head -n 40
			exit 1
		}
		grep -q 'OK ' ops-gpu.log || {
			echo "no op was tested: $(grep 'left out' ops-gpu.log | grep cuda)"
			exit 77
		}
	done
}
trap 'rm -f ops-gpu.log' EXIT
if [ "${DPTRAIN_GPU-}" = 1 ]; then
	run 'cuda in f64' 'cuda in f32' 'cuda in bf16' 'cuda in f16'
	exit
fi
DPTRAIN_BACKEND_PATH=$PWD/tests/fakes/cuda/.libs
export DPTRAIN_BACKEND_PATH
[ -f "$DPTRAIN_BACKEND_PATH/dptrain_cuda.so" ] || {
	echo "the fake device was not built (no CUDA toolkit)"
	exit 77
}
orders=down
[ "${1-}" = full ] && orders='up down 7'
for DPTRAIN_FAKE_ORDER in $orders; do
	export DPTRAIN_FAKE_ORDER
	[ "${1-}" = full ] && run 'cuda in f64' 'cuda in f32' 'cuda in f16'
	run 'cuda in bf16'
done
# Products, convolutions and attention by own kernels, as without the libraries.
export DPTRAIN_FAKE_CUBLASLT_VERSION=120000 DPTRAIN_FAKE_CUDNN_VERSION=80000
run 'linear on cuda in bf16' 'linear_dgrad on cuda in f32' 'linear_wgrad on cuda in f16' 'lmhead on cuda in f16' \
	'conv on cuda in f16' 'conv_dgrad on cuda in bf16' 'conv_wgrad on cuda in bf16' 'attention on cuda in bf16' \
	'attention_grad on cuda in bf16' 'attention on cuda in f16' 'attention_grad on cuda in f16'
echo "ops: all on the fake device, threads in the orders: $orders"
