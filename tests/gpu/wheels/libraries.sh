#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# libraries.sh: prints the folder of cuDNN, cuBLASLt, NCCL and NVRTC for --with-cuda-libs: the versions in PyTorch 2.11
# for CUDA 13 (1 GB, once). Exits with 77 and the reason if they are unavailable.
exec sh "$(dirname "$0")/fetch.sh" cuda nvidia-cudnn-cu13==9.19.0.56 nvidia-nccl-cu13==2.28.9 nvidia-cublas==13.1.0.3 \
	nvidia-cuda-nvrtc==13.0.88
