#!/bin/sh
# options_off.sh BUILD: a build with everything optional left out starts, and says what it lacks.
set -e
cd "$1"
[ ! -e .libs/dptrain_cuda.so ]
./dptrain --version
./dptrack --version
./dptrain backends >backends.txt
cat backends.txt
grep -q '^cpu ' backends.txt
grep -q '^cuda .*not installed' backends.txt
