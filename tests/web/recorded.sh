#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The page of the twelve runs, recorded by libdptrack instead of read from event files of other programs.
. "$srcdir/tests/web/prepare.sh"
DPT_RECORDER=$builddir/tests/web/twelve_record
export DPT_RECORDER
exec timeout 200 node --test --test-name-pattern='first screen|spike of one step|NaN and the failure' \
	"$srcdir/tests/web/page_test.mjs"
