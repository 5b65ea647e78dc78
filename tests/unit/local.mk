# Unit tests of tracker/base; one cmocka program per module.
if HAVE_CMOCKA
base_tests = tests/unit/base_test
check_PROGRAMS += $(base_tests)
TESTS += $(base_tests)
tests_unit_base_test_SOURCES = tests/unit/base_test.c
tests_unit_base_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_test_LDADD = libtrackbase.la $(CMOCKA_LIBS)
endif
# How a job's end is judged.
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/verdict_test
TESTS += tests/unit/verdict_test
tests_unit_verdict_test_SOURCES = tests/unit/verdict_test.c
tests_unit_verdict_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_verdict_test_LDADD = libtrainer.la libtrackbase.la $(CMOCKA_LIBS)
endif
include tests/unit/cpu.mk
include tests/unit/data.mk
