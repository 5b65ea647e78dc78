#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# toolkit.sh: prints a folder with nvcc for --with-cuda, on a machine without one (100 MB, once). Exits with 77 and the
# reason if it is unavailable. Versions are pinned, because pip would otherwise mix parts of several releases.
folder=$(sh "$(dirname "$0")/fetch.sh" nvcc nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 \
	nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85 nvidia-nvtx==13.0.85) || exit
echo "$folder/cu13"
