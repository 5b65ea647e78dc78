# Kernels of the cpu module against plain loops.
if HAVE_CMOCKA
if HAVE_ONEDNN
check_PROGRAMS += tests/unit/cpu_kernels_test
TESTS += tests/unit/cpu_kernels_test
tests_unit_cpu_kernels_test_SOURCES = tests/unit/cpu_kernels_test.c
tests_unit_cpu_kernels_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_cpu_kernels_test_LDADD = libgraph.la $(CMOCKA_LIBS) -lm
endif
endif
