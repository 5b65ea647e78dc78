# SPDX-License-Identifier: Apache-2.0
# libgraph: the graph's core, also linked into backend modules. libtrainer: everything of dptrain but main.c and job.c, so
# that tests link what the program runs.
noinst_LTLIBRARIES += libgraph.la libtrainer.la
libgraph_la_SOURCES =
libgraph_la_LIBADD = libmem.la
libtrainer_la_SOURCES =
libtrainer_la_CPPFLAGS = $(AM_CPPFLAGS)
libtrainer_la_LIBADD = libgraph.la libinsight.la libobject.la

EXTRA_DIST += trainer/python/README.md trainer/python/dptrack_trainer/__init__.py trainer/python/dptrack_trainer/__main__.py

bin_PROGRAMS += dptrain
dptrain_SOURCES = trainer/main.c trainer/job.c trainer/job.h
dptrain_LDADD = libtrainer.la libtracker.la libtrackbase.la

include trainer/graph/local.mk
include trainer/ops/local.mk
include trainer/optimizers/local.mk
include trainer/models/local.mk
include trainer/config/local.mk
include trainer/data/local.mk
include trainer/weights/local.mk
include trainer/comm/local.mk
include trainer/strategies/local.mk
include trainer/backends/local.mk
include trainer/launch/local.mk
include trainer/program/local.mk
include trainer/advise/local.mk
include trainer/state/local.mk
include trainer/run/local.mk
include trainer/sweep/local.mk
include trainer/tools/local.mk
