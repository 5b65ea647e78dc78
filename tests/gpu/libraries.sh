#!/bin/sh
# libraries.sh: prints the folder of cuDNN, cuBLASLt, NCCL and NVRTC for --with-cuda-libs: the versions that PyTorch 2.11
# for CUDA 13 carries, from PyPI (1 GB, once, below $XDG_CACHE_HOME or ~/.cache). 77: they cannot be had, and why.
pins='nvidia-cudnn-cu13==9.19.0.56 nvidia-nccl-cu13==2.28.9 nvidia-cublas==13.1.0.3 nvidia-cuda-nvrtc==13.0.88'
top=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/dptrack
dir=$top/cuda-$(printf '%s' "$pins" | cksum | cut -d' ' -f1)
if [ ! -d "$dir" ]; then
	mkdir -p "$top" && new=$(mktemp -d "$top/cuda.XXXXXX") || exit 77
	trap 'rm -rf "$new"' EXIT
	# shellcheck disable=SC2086
	if ! python3 -m venv "$new/venv" >"$new/log" 2>&1 ||
		! "$new/venv/bin/pip" download -q --no-deps --disable-pip-version-check --timeout 20 --retries 1 \
			-d "$new/wheels" $pins >"$new/log" 2>&1; then
		echo "no libraries of CUDA: $(tail -n 1 "$new/log")" >&2
		exit 77
	fi
	for wheel in "$new"/wheels/*.whl; do
		python3 -m zipfile -e "$wheel" "$new" || exit 77
	done
	rm -rf "$new/wheels" "$new/venv" "$new/log"
	mv -T "$new" "$dir" 2>/dev/null || [ -d "$dir" ] || exit 77 # another one was faster
fi
echo "$dir/nvidia"
