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
# Without PCRE2 and utf8proc, too; bytes are always there.
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
echo text >"$tmp/text.txt"
./dptrain tokenize --data-path "$tmp/text.txt" --val-split 0 --out "$tmp/tokens"
grep -q '^#define HAVE_TOKENIZERS 1' config.h ||
	./dptrain tokenize --data-path "$tmp/text.txt" --tokenizer . --out "$tmp/tokens" 2>&1 | grep -q 'built without PCRE2 and utf8proc'
# Without libcjose, one line says what is missing.
grep -q '^#define HAVE_CJOSE 1' config.h ||
	./dptrack serve --logdir options_off.runs --port 0 --oidc /dev/null 2>&1 | grep -q 'error: --oidc: this dptrack was built without libcjose'
