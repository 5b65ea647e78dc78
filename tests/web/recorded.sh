#!/bin/sh
# What the page says of the twelve runs when libdptrack recorded them, instead of other people's event files.
. "$srcdir/tests/web/prepare.sh"
DPT_RECORDER=$builddir/tests/web/twelve_record
export DPT_RECORDER
exec timeout 200 node --test --test-name-pattern='first screen|spike of one step|NaN and the failure' \
	"$srcdir/tests/web/page_test.mjs"
