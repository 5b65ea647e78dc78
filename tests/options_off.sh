#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A build without cuda, UCX and MPI (distcheck's) starts, and reports what is missing.
set -e
cd "$builddir"
[ ! -e .libs/dptrain_cuda.so ]
./dptrain --version
./dptrack --version
# In distcheck the build whose tarball this is lies three folders above, with its modules.
backends=$(DPTRAIN_BACKEND_PATH="$builddir/.libs" ./dptrain backends)
echo "$backends"
echo "$backends" | grep -q '^cpu '
echo "$backends" | grep -q '^cuda .*not installed'
