# SPDX-License-Identifier: Apache-2.0
# The cuda module. nvcc compiles *.cu through libtool; -forward-unknown-opts passes libtool's -fPIC to the host
# compiler; without exceptions, RTTI and thread-safe statics its objects need no libstdc++.
cuda_module = \
	trainer/backends/cuda/attend.h \
	trainer/backends/cuda/attention_plan.c \
	trainer/backends/cuda/attention_plan.h \
	trainer/backends/cuda/blas.c \
	trainer/backends/cuda/blas.h \
	trainer/backends/cuda/calls.c \
	trainer/backends/cuda/calls.def \
	trainer/backends/cuda/calls.h \
	trainer/backends/cuda/columns.h \
	trainer/backends/cuda/cuda.h \
	trainer/backends/cuda/device.h \
	trainer/backends/cuda/cudnn_engine.c \
	trainer/backends/cuda/cudnn_engine.h \
	trainer/backends/cuda/cudnn_graph.c \
	trainer/backends/cuda/cudnn_plan.c \
	trainer/backends/cuda/cudnn_plan.h \
	trainer/backends/cuda/conv_plan.c \
	trainer/backends/cuda/conv_plan.h \
	trainer/backends/cuda/device_calls.c \
	trainer/backends/cuda/device_calls.h \
	trainer/backends/cuda/fold.h \
	trainer/backends/cuda/plan_cache.c \
	trainer/backends/cuda/plan_cache.h \
	trainer/backends/cuda/cuda_matmul.c \
	trainer/backends/cuda/many.h trainer/backends/cuda/cuda_matmul.h \
	trainer/backends/cuda/cuda_module.c \
	trainer/backends/cuda/cuda_module.h \
	trainer/backends/cuda/cuda_pick.c \
	trainer/backends/cuda/product.h \
	trainer/backends/cuda/ranks.c \
	trainer/backends/cuda/ranks.h \
	trainer/backends/cuda/cuda_streams.c \
	trainer/backends/cuda/kernel_trial.c \
	trainer/backends/cuda/kernel_trial.h
cuda_kernels = trainer/backends/cuda/matmul_own.cu $(op_cuda)
cuda_sources = $(cuda_module) $(cuda_kernels)
EXTRA_DIST += $(cuda_sources)

# Sanitizers cannot check a GPU, so their build has only the module on the emulated device.
if HAVE_CUDA
if !SANITIZERS
pkglib_LTLIBRARIES += dptrain_cuda.la
dptrain_cuda_la_SOURCES = $(cuda_sources)
cuda_cppflags = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) -DDPT_CUDA_FOLDERS='"$(CUDA_FOLDERS)"'
dptrain_cuda_la_CPPFLAGS = $(cuda_cppflags)
dptrain_cuda_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
dptrain_cuda_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -no-undefined -Wl,-z,defs -Wl,--exclude-libs,ALL \
	-export-symbols-regex '^dptrain_backend_v1$$'
dptrain_cuda_la_LIBADD = libgraph.la $(CUDA_LIBS)
dptrain_cuda_la_LINK = $(LIBTOOL) $(AM_V_lt) --tag=CC $(AM_LIBTOOLFLAGS) --mode=link $(CC) $(AM_CFLAGS) $(CFLAGS) \
	$(dptrain_cuda_la_LDFLAGS) $(LDFLAGS) -o $@
endif
endif

NVCC_HOST_FLAGS = -fno-exceptions,-fno-rtti,-fno-threadsafe-statics,-fvisibility=hidden,-Wall
AM_V_NVCC = $(am__v_NVCC_@AM_V@)
am__v_NVCC_ = $(am__v_NVCC_@AM_DEFAULT_V@)
am__v_NVCC_0 = @echo "  NVCC    " $@;
am__v_NVCC_1 =

# ptxas writes registers and spills of each kernel to a .ptxas file next to the object, for tests/gpu/registers.py.
SUFFIXES = .cu
.cu.lo:
	@$(MKDIR_P) $(@D)
	$(AM_V_NVCC)$(LIBTOOL) $(AM_V_lt) --tag=CC --mode=compile $(NVCC) -forward-unknown-opts $(NVCCFLAGS) -std=c++20 \
		--Werror=all-warnings --ptxas-options=-v --compiler-options=$(NVCC_HOST_FLAGS) $(AM_CPPFLAGS) $(CPPFLAGS) \
		-MMD -MP -MF $(@:.lo=.d) -MT $@ -c -o $@ $< 2>$(@:.lo=.ptxas) || { cat $(@:.lo=.ptxas) >&2; rm -f $@; exit 1; }
CLEANFILES += $(cuda_kernels:.cu=.ptxas) $(cuda_kernels:.cu=.d)

# Include dependencies of each kernel, written by its compilation.
-include $(cuda_kernels:.cu=.d)
