# SPDX-License-Identifier: Apache-2.0
# Sweeps: the rule which trial continues, and complete sweeps whose launcher is killed.
cmocka_tests += tests/sweep/asha_test
tests_sweep_asha_test_LDADD = libtrainer.la libtrackbase.la $(CMOCKA_LIBS) $(JANSSON_LIBS) -lm
TESTS += tests/sweep/sweeps.py
EXTRA_DIST += tests/sweep/sweeps.py tests/sweep/curves.json tests/sweep/make_curves.py
