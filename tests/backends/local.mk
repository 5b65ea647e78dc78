# Kernels of the cpu module against plain loops.
if HAVE_ONEDNN
cmocka_tests += tests/backends/cpu_kernels_test
tests_backends_cpu_kernels_test_LDADD = libgraph.la $(CMOCKA_LIBS) -lm
endif
