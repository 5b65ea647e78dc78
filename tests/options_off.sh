#!/bin/sh
# The build with everything optional left out compiles, says so, and its tests pass.
set -e
top=$(pwd)
mkdir -p build-plain
cd build-plain
"$top/configure" --without-ui --with-cuda=no --with-mpi=no CFLAGS="-O1 -Werror"
make -j"$(nproc)"
make -j"$(nproc)" check
[ ! -e .libs/dptrain_cuda.so ]
./dptrain backends
