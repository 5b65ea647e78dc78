#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A build without cuda, UCX and MPI (distcheck's) starts, and reports what is missing.
set -e
cd "$builddir"
[ ! -e .libs/dptrain_cuda.so ]
./dptrain --version
./dptrack --version
backends=$(./dptrain backends)
echo "$backends"
echo "$backends" | grep -q '^cpu '
echo "$backends" | grep -q '^cuda .*not installed'
