#!/bin/sh
# libraries.sh: prints the folder of cuDNN, cuBLASLt, NCCL and NVRTC for --with-cuda-libs: the versions that PyTorch 2.11
# for CUDA 13 carries (1 GB, once). 77: they cannot be had, and why.
exec sh "$(dirname "$0")/fetch.sh" cuda nvidia-cudnn-cu13==9.19.0.56 nvidia-nccl-cu13==2.28.9 nvidia-cublas==13.1.0.3 \
	nvidia-cuda-nvrtc==13.0.88
