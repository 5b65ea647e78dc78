#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# options_off.sh BUILD: a build without any optional part starts, and reports what is missing.
set -e
cd "$1"
[ ! -e .libs/dptrain_cuda.so ]
./dptrain --version
./dptrack --version
./dptrain backends >backends.txt
cat backends.txt
grep -q '^cpu ' backends.txt
grep -q '^cuda .*not installed' backends.txt
