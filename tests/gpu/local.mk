# SPDX-License-Identifier: Apache-2.0
# The cuda backend on the fake device of tests/fakes/cuda (or, with DPTRAIN_GPU=1, on a GPU): every op, complete
# networks, streams, several ranks, refusals. In full (DPT_TEST_FULL=1, ./check --long) some test more.
gpu_tests = tests/gpu/ops.sh tests/gpu/nets.py tests/gpu/products.py tests/gpu/ranks.py tests/gpu/refusals.py tests/gpu/trace.py \
	tests/gpu/bundle.py tests/gpu/plan.py tests/gpu/whole.py tests/gpu/seen.py tests/gpu/allocations.py \
	tests/gpu/kept.py tests/gpu/blame.py tests/gpu/wheel_libraries.py
TESTS += $(gpu_tests)
cmocka_tests += tests/gpu/streams_test
EXTRA_DIST += $(gpu_tests)
CHECK_LONG += tests/fakes/cuda/mutants.py tests/gpu/registers.py
EXTRA_DIST += tests/gpu/all tests/gpu/bundle.sh tests/gpu/device.py tests/gpu/peer.py
EXTRA_DIST += tests/gpu/wheels/libraries.sh tests/gpu/wheels/toolkit.sh tests/gpu/wheels/fetch.sh tests/gpu/h200.json tests/gpu/h100.json tests/gpu/h100-2026-11-27.json \
	tests/gpu/plans.txt tests/gpu/registers.py tests/gpu/registers.txt
if HAVE_CUDA
cmocka_tests += tests/gpu/calls_test
check_PROGRAMS += tests/gpu/conformance_fake
TESTS += tests/gpu/conformance_fake
if !SANITIZERS
check_PROGRAMS += tests/gpu/conformance
check_LTLIBRARIES += tests/gpu/libconformance.la
endif
if HAVE_CUDNN
cmocka_tests += tests/gpu/judge_test
check_LTLIBRARIES += tests/gpu/libcuda.la
endif
endif
tests_gpu_calls_test_SOURCES = tests/gpu/calls_test.c trainer/backends/cuda/calls.c trainer/backends/cuda/calls.def \
	trainer/backends/cuda/calls.h
tests_gpu_calls_test_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) -DREAL_FOLDERS='"$(CUDA_FOLDERS)"'
tests_gpu_judge_test_SOURCES = tests/gpu/judge_test.c $(graph_test_net) trainer/backends/cuda/calls.c \
	trainer/backends/cuda/conv_plan.c trainer/backends/cuda/cudnn_plan.c trainer/backends/cuda/cudnn_engine.c \
	trainer/backends/cuda/cudnn_graph.c trainer/backends/cuda/plan_cache.c \
	trainer/backends/cuda/kernel_trial.c
tests_gpu_judge_test_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) -DDPT_CUDA_FOLDERS='"$(CUDA_FOLDERS)"'
tests_gpu_judge_test_LDADD = $(LDADD) $(CUDA_LIBS)
tests_gpu_libcuda_la_SOURCES = tests/gpu/libcuda.c
tests_gpu_libcuda_la_LDFLAGS = $(AM_LDFLAGS) -no-undefined -rpath /nowhere -version-info 1

# Claims of the fakes, on the fake device and (tests/gpu/all) on a GPU.
conformance_sources = tests/gpu/conformance_libraries.c tests/gpu/conformance.h trainer/backends/cuda/calls.c \
	trainer/backends/cuda/conv_plan.c trainer/backends/cuda/cudnn_plan.c trainer/backends/cuda/cudnn_engine.c \
	trainer/backends/cuda/cudnn_graph.c trainer/backends/cuda/plan_cache.c \
	trainer/backends/cuda/kernel_trial.c
EXTRA_DIST += tests/gpu/conformance.cu $(conformance_sources)
tests_gpu_libconformance_la_SOURCES = tests/gpu/conformance.cu
tests/gpu/conformance.lo: trainer/backends/cuda/device.h
tests_gpu_conformance_SOURCES = $(conformance_sources)
tests_gpu_conformance_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) -DDPT_CUDA_FOLDERS='"$(CUDA_FOLDERS)"'
tests_gpu_conformance_LDADD = tests/gpu/libconformance.la libgraph.la libtrackbase.la $(CUDA_LIBS)
tests_gpu_conformance_fake_SOURCES = $(conformance_sources)
tests_gpu_conformance_fake_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) \
	-DDPT_CUDA_FOLDERS='"$(abs_builddir)/tests/fakes/cuda/.libs"'
tests_gpu_conformance_fake_LDADD = tests/fakes/cuda/kernels/gpu/conformance.lo libgraph.la libtrackbase.la tests/fakes/cuda/libdevice.la

# What tests/gpu/all needs on another machine.
if HAVE_CUDA
gpu-bundle: dptrain$(EXEEXT) dptrack$(EXEEXT) dptrain_cuda.la tests/ops/ops_test$(EXEEXT) tests/gpu/conformance$(EXEEXT)
	@srcdir='$(abs_top_srcdir)' builddir='$(abs_top_builddir)' $(SHELL) $(srcdir)/tests/gpu/bundle.sh
else
gpu-bundle:
	@echo "make gpu-bundle needs the cuda module, which configure has left out (no nvcc)" >&2; exit 1
endif
.PHONY: gpu-bundle
CLEANFILES += dptrain-gpu-bundle.tar.zst
