# SPDX-License-Identifier: Apache-2.0
# The ucx module: messages between machines on UCX.
EXTRA_DIST += trainer/comm/ucx/ucx_module.c

if HAVE_UCX
pkglib_LTLIBRARIES += dptrain_ucx.la
dptrain_ucx_la_SOURCES = trainer/comm/ucx/ucx_module.c
dptrain_ucx_la_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
dptrain_ucx_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
dptrain_ucx_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -no-undefined -Wl,-z,defs -Wl,--exclude-libs,ALL \
	-export-symbols-regex '^dptrain_link_v4$$'
dptrain_ucx_la_LIBADD = libtrackbase.la $(UCX_LIBS)
endif
