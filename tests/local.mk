# TESTS run in `make check`: hermetic and fast. CHECK_EXTRA run in ./check: browser, real readers, packages
# from PyPI and npm. Exit 77 means skipped, with the reason on the last line.
EXTRA_DIST += tests/lint/allowed.txt

AM_TESTS_ENVIRONMENT = srcdir='$(abs_top_srcdir)'; builddir='$(abs_top_builddir)'; export srcdir builddir;
TEST_EXTENSIONS = .sh .py
SH_LOG_COMPILER = $(SHELL)
PY_LOG_COMPILER = python3

dist_check_SCRIPTS =

include tests/unit/local.mk
include tests/lint/local.mk
