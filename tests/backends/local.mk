# SPDX-License-Identifier: Apache-2.0
# Steps allocate nothing.
TESTS += tests/backends/allocations.py
EXTRA_DIST += tests/backends/allocations.py

# Kernels of the cpu module compared with plain loops.
if HAVE_ONEDNN
cmocka_tests += tests/backends/cpu_kernels_test tests/backends/tiles_test tests/backends/winograd_test \
	tests/backends/bf16_conv_test tests/backends/pick_test tests/backends/widen_test
tests_backends_pick_test_SOURCES = tests/backends/pick_test.c trainer/backends/cpu/cpu_pick.c trainer/backends/cpu/team.c \
	trainer/backends/cpu/onednn.c
tests_backends_pick_test_CPPFLAGS = $(AM_CPPFLAGS) $(ONEDNN_CPPFLAGS)
tests_backends_pick_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(OPENMP_CFLAGS)
tests_backends_pick_test_LDADD = libgraph.la $(ONEDNN_LIBS) $(CMOCKA_LIBS) -lm
tests_backends_bf16_conv_test_SOURCES = tests/backends/bf16_conv_test.c $(bf16_conv_sources) trainer/backends/cpu/amx.c \
	trainer/backends/cpu/team.c
tests_backends_bf16_conv_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(OPENMP_CFLAGS) -Wno-psabi -fno-math-errno \
	-fno-trapping-math
tests_backends_bf16_conv_test_LDADD = libgraph.la $(CMOCKA_LIBS) -lm
tests_backends_cpu_kernels_test_LDADD = libgraph.la $(CMOCKA_LIBS) -lm
tests_backends_tiles_test_SOURCES = tests/backends/tiles_test.c trainer/backends/cpu/amx.c trainer/backends/cpu/tiles.c \
	trainer/backends/cpu/team.c
tests_backends_tiles_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(OPENMP_CFLAGS) -Wno-psabi -fno-math-errno \
	-fno-trapping-math
tests_backends_tiles_test_LDADD = libgraph.la $(CMOCKA_LIBS) -lm
tests_backends_widen_test_SOURCES = tests/backends/widen_test.c trainer/backends/cpu/widen.c trainer/backends/cpu/team.c
tests_backends_widen_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(OPENMP_CFLAGS) -Wno-psabi -fno-math-errno \
	-fno-trapping-math
tests_backends_widen_test_LDADD = libgraph.la $(CMOCKA_LIBS) -lm
tests_backends_winograd_test_SOURCES = tests/backends/winograd_test.c $(winograd_sources) \
	trainer/backends/cpu/team.c trainer/backends/cpu/onednn.c trainer/backends/cpu/onednn_conv.c
tests_backends_winograd_test_CPPFLAGS = $(AM_CPPFLAGS) $(ONEDNN_CPPFLAGS)
tests_backends_winograd_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(OPENMP_CFLAGS) -Wno-psabi -fno-math-errno \
	-fno-trapping-math
tests_backends_winograd_test_LDADD = libgraph.la $(ONEDNN_LIBS) $(CMOCKA_LIBS) -lm
endif
