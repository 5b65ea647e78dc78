# SPDX-License-Identifier: Apache-2.0
# Formulas compared with the strategies' passes; the rules of a study that must follow from them; the output of plans.
cmocka_tests += tests/advise/formula_test tests/advise/study_test
tests_advise_study_test_SOURCES = tests/advise/study_test.c tests/advise/study.c tests/advise/study.h
advise_tests = tests/advise/plan.py tests/advise/map.py tests/advise/catalogue.py
TESTS += $(advise_tests)
EXTRA_DIST += $(advise_tests)
