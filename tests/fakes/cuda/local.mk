# SPDX-License-Identifier: Apache-2.0
# The cuda module on a fake device: its sources and kernels, compiled by g++ and linked with fakes of CUDA's libraries.
# `DPTRAIN_BACKEND_PATH=build/tests/fakes/cuda/.libs dptrain --backend cuda …` runs completely on it.
# The libraries are next to it under the real ones' names, for DPTRAIN_CUDA_LIBS; all of them use libdevice.
fake_device_sources = tests/fakes/cuda/bounds.h tests/fakes/cuda/cudart.cc tests/fakes/cuda/emulate.h tests/fakes/cuda/enqueue.h \
	tests/fakes/cuda/fibers.cc tests/fakes/cuda/fibers.h tests/fakes/cuda/matrices.cc \
	tests/fakes/cuda/memory.cc tests/fakes/cuda/memory.h tests/fakes/cuda/mutant.cc tests/fakes/cuda/mutant.h \
	tests/fakes/cuda/queue.cc tests/fakes/cuda/queue.h
fake_libraries = tests/fakes/cuda/cublaslt.c tests/fakes/cuda/cudnn.c tests/fakes/cuda/descriptor.h \
	tests/fakes/cuda/nvml.c tests/fakes/cuda/profiler.c tests/fakes/cuda/steps.c tests/fakes/cuda/tf32.h \
	tests/fakes/cuda/written.c
EXTRA_DIST += $(fake_device_sources) tests/fakes/cuda/nccl.cc $(fake_libraries) tests/fakes/cuda/mutants.py

if HAVE_CUDA
# The sanitizer's run-time is in the program; C++ libraries are not linked with it. With -O2 it takes twice as long.
if SANITIZERS
fake_library_flags = $(AM_LDFLAGS) -no-undefined -rpath /nowhere
fake_optimization = -O1 -g1
else
fake_library_flags = $(AM_LDFLAGS) -no-undefined -Wl,-z,defs -rpath /nowhere
fake_optimization = -O2 -g
endif
check_LTLIBRARIES += tests/fakes/cuda/libdevice.la tests/fakes/cuda/dptrain_cuda.la
fake_cuda_flags = -std=c++20 $(fake_optimization) -Wall -Wextra -fno-exceptions -fno-rtti $(SANITIZER_FLAGS)
tests_fakes_cuda_libdevice_la_SOURCES = $(fake_device_sources)
tests_fakes_cuda_libdevice_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_fakes_cuda_libdevice_la_CXXFLAGS = $(fake_cuda_flags)
tests_fakes_cuda_libdevice_la_LDFLAGS = $(fake_library_flags) -avoid-version
tests_fakes_cuda_dptrain_cuda_la_SOURCES = $(cuda_module)
tests_fakes_cuda_dptrain_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) \
	-DDPT_CUDA_FOLDERS='"$(abs_builddir)/tests/fakes/cuda/.libs"'
tests_fakes_cuda_dptrain_cuda_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
tests_fakes_cuda_dptrain_cuda_la_LDFLAGS = $(fake_library_flags) -module -avoid-version -Wl,--exclude-libs,ALL
fake_cuda_kernels = $(cuda_kernels:trainer/%.cu=tests/fakes/cuda/kernels/%.lo)
tests_fakes_cuda_dptrain_cuda_la_LIBADD = $(fake_cuda_kernels) libgraph.la tests/fakes/cuda/libdevice.la
tests_fakes_cuda_dptrain_cuda_la_DEPENDENCIES = $(fake_cuda_kernels) libgraph.la tests/fakes/cuda/libdevice.la
tests_fakes_cuda_dptrain_cuda_la_LINK = $(LIBTOOL) $(AM_V_lt) --tag=CXX $(AM_LIBTOOLFLAGS) --mode=link $(CXX) \
	$(tests_fakes_cuda_dptrain_cuda_la_LDFLAGS) $(LDFLAGS) -o $@

# The driver's NVML, and a profiler that NVTX finds by $NVTX_INJECTION64_PATH.
check_LTLIBRARIES += tests/fakes/cuda/libnvidia-ml.la tests/fakes/cuda/libprofiler.la
tests_fakes_cuda_libnvidia_ml_la_SOURCES = tests/fakes/cuda/nvml.c
tests_fakes_cuda_libnvidia_ml_la_LDFLAGS = $(fake_library_flags) -version-info 1
tests_fakes_cuda_libprofiler_la_SOURCES = tests/fakes/cuda/profiler.c
tests_fakes_cuda_libprofiler_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_fakes_cuda_libprofiler_la_LDFLAGS = $(fake_library_flags) -avoid-version

if HAVE_CUBLASLT
check_LTLIBRARIES += tests/fakes/cuda/libcublasLt.la
endif
tests_fakes_cuda_libcublasLt_la_SOURCES = tests/fakes/cuda/cublaslt.c
tests_fakes_cuda_libcublasLt_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_fakes_cuda_libcublasLt_la_LDFLAGS = $(fake_library_flags) -version-info 13
tests_fakes_cuda_libcublasLt_la_LIBADD = tests/fakes/cuda/libdevice.la

if HAVE_CUDNN
check_LTLIBRARIES += tests/fakes/cuda/libcudnn.la
endif
tests_fakes_cuda_libcudnn_la_SOURCES = tests/fakes/cuda/cudnn.c tests/fakes/cuda/descriptor.h tests/fakes/cuda/steps.c \
	tests/fakes/cuda/written.c
tests_fakes_cuda_libcudnn_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_fakes_cuda_libcudnn_la_LDFLAGS = $(fake_library_flags) -version-info 9
tests_fakes_cuda_libcudnn_la_LIBADD = tests/fakes/cuda/libdevice.la

if HAVE_NCCL
check_LTLIBRARIES += tests/fakes/cuda/libnccl.la
cmocka_tests += tests/fakes/cuda/nccl_test
endif
tests_fakes_cuda_nccl_test_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_fakes_cuda_nccl_test_LDADD = $(LDADD) tests/fakes/cuda/libnccl.la tests/fakes/cuda/libdevice.la
tests_fakes_cuda_libnccl_la_SOURCES = tests/fakes/cuda/nccl.cc
tests_fakes_cuda_libnccl_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_fakes_cuda_libnccl_la_CXXFLAGS = $(fake_cuda_flags)
tests_fakes_cuda_libnccl_la_LDFLAGS = $(fake_library_flags) -version-info 2
tests_fakes_cuda_libnccl_la_LIBADD = tests/fakes/cuda/libdevice.la

compile_emulated = $(LIBTOOL) $(AM_V_lt) --tag=CXX --mode=compile $(CXX) $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) \
	-DCUDA_EMULATION='"tests/fakes/cuda/emulate.h"' $(CXXFLAGS) $(fake_cuda_flags) -fvisibility=hidden \
	-MMD -MP -MF $(@:.lo=.d) -MT $@ -x c++ -c -o $@ $<
tests/fakes/cuda/kernels/%.lo: trainer/%.cu
	@$(MKDIR_P) $(@D)
	$(AM_V_CXX)$(compile_emulated)
tests/fakes/cuda/kernels/%.lo: tests/%.cu
	@$(MKDIR_P) $(@D)
	$(AM_V_CXX)$(compile_emulated)
-include $(fake_cuda_kernels:.lo=.d) tests/fakes/cuda/kernels/gpu/conformance.d
distclean-local:
	rm -rf tests/fakes/cuda/kernels
endif
