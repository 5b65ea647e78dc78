# SPDX-License-Identifier: Apache-2.0
# Flags and configuration; learning rates compared with PyTorch's own schedulers.
cmocka_tests += tests/config/config_test tests/config/lr_schedule_test
tests_config_config_test_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_config_config_test_LDADD = $(LDADD) $(JANSSON_LIBS)
EXTRA_DIST += tests/config/lr_table.py tests/config/lr_table.def
