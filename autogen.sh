#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes ./configure and its helpers from configure.ac; needs autoconf, automake and libtool.
set -e
cd "$(dirname "$0")"
exec autoreconf --install --force --warnings=all,no-portability,no-obsolete
