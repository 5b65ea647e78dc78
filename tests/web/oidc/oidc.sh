#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sign-in by a real provider of OpenID Connect: forged tokens, persons in a browser (chromium), programs.
. "$srcdir/tests/web/prepare.sh"
grep -q '^#define HAVE_CJOSE 1' "$builddir/config.h" || skip 'dptrack is built without libcjose (Debian: libcjose-dev)'
exec timeout 300 node --test "$srcdir/tests/web/oidc/oidc_test.mjs"
