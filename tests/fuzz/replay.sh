#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every target over its committed corpus; each input must end without a crash or a failed check.
set -e
for target in journal request grammar decode range gzip safetensors state picture tar tfrecord lmdb parquet arrow lines json_member shard_list tokenizer chat_template; do
	printf '%s: ' "$target"
	if "${builddir:-.}/tests/fuzz/$target" -help=1 2>/dev/null | grep -q libFuzzer; then
		"${builddir:-.}/tests/fuzz/$target" -runs=0 "${srcdir:-.}/tests/fuzz/corpus/$target"
	else
		timeout 300 "${builddir:-.}/tests/fuzz/$target" "${srcdir:-.}/tests/fuzz/corpus/$target"
	fi
done
