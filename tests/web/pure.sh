#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The parts of the page that need no browser, as bundled by the build.
if ! command -v node >/dev/null 2>&1; then
	echo 'node is not installed'
	exit 77
fi
if [ ! -f "$builddir/web/ui/pure.mjs" ]; then
	echo 'the page was not built here (--without-ui, or ready-made from a release)'
	exit 77
fi
exec node --test "$srcdir/tests/web/pure_test.mjs"
