#!/bin/sh
# toolkit.sh: prints a folder with nvcc for --with-cuda, on a machine that has none (100 MB, once). 77: it cannot be had, and
# why. Without their versions pip would take parts of several releases.
folder=$(sh "$(dirname "$0")/fetch.sh" nvcc nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 \
	nvidia-cuda-runtime==13.0.88 nvidia-cuda-cccl==13.0.85 nvidia-nvtx==13.0.85) || exit
echo "$folder/cu13"
