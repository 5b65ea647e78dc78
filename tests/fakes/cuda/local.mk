# The cuda module on a device that is not there: its sources and kernels, compiled by g++ and linked with fakes of CUDA's
# libraries. `DPTRAIN_BACKEND_PATH=build/tests/fakes/cuda/.libs dptrain --backend cuda …` runs whole on it.
fake_cuda_sources = tests/fakes/cuda/cudart.cc tests/fakes/cuda/emulate.h tests/fakes/cuda/fibers.cc \
	tests/fakes/cuda/fibers.h tests/fakes/cuda/memory.cc tests/fakes/cuda/memory.h tests/fakes/cuda/queue.cc \
	tests/fakes/cuda/queue.h
EXTRA_DIST += $(fake_cuda_sources)

if HAVE_CUDA
check_LTLIBRARIES += tests/fakes/cuda/dptrain_cuda.la
fake_cuda_flags = -std=c++20 -O2 -g -Wall -Wextra -fno-exceptions -fno-rtti -fvisibility=hidden $(SANITIZER_FLAGS)
tests_fakes_cuda_dptrain_cuda_la_SOURCES = $(cuda_module) $(fake_cuda_sources)
tests_fakes_cuda_dptrain_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_fakes_cuda_dptrain_cuda_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
tests_fakes_cuda_dptrain_cuda_la_CXXFLAGS = $(fake_cuda_flags)
tests_fakes_cuda_dptrain_cuda_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -no-undefined -Wl,-z,defs \
	-Wl,--exclude-libs,ALL -rpath /nowhere
fake_cuda_kernels = $(op_cuda:trainer/ops/%.cu=tests/fakes/cuda/kernels/%.lo)
tests_fakes_cuda_dptrain_cuda_la_LIBADD = $(fake_cuda_kernels) libgraph.la
tests_fakes_cuda_dptrain_cuda_la_DEPENDENCIES = $(fake_cuda_kernels) libgraph.la

tests/fakes/cuda/kernels/%.lo: trainer/ops/%.cu
	@$(MKDIR_P) $(@D)
	$(AM_V_CXX)$(LIBTOOL) $(AM_V_lt) --tag=CXX --mode=compile $(CXX) $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) \
		-DCUDA_EMULATION='"tests/fakes/cuda/emulate.h"' $(CXXFLAGS) $(fake_cuda_flags) \
		-MMD -MP -MF $(@:.lo=.d) -MT $@ -x c++ -c -o $@ $<
-include $(fake_cuda_kernels:.lo=.d)
distclean-local:
	rm -rf tests/fakes/cuda/kernels
endif
