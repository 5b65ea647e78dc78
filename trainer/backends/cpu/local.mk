# SPDX-License-Identifier: Apache-2.0
# The cpu module: oneDNN and own loops, one OpenMP pool for both.
winograd_sources = trainer/backends/cpu/winograd/forward.c trainer/backends/cpu/winograd/wgrad.c \
	trainer/backends/cpu/winograd/winograd.c
bf16_conv_sources = trainer/backends/cpu/bf16_conv/bf16_conv.c trainer/backends/cpu/bf16_conv/bf16_block.c \
	trainer/backends/cpu/bf16_conv/bf16_forward.c trainer/backends/cpu/bf16_conv/bf16_plan.c \
	trainer/backends/cpu/bf16_conv/bf16_wgrad.c
cpu_sources = \
	trainer/backends/cpu/amx.c \
	trainer/backends/cpu/amx.h \
	trainer/backends/cpu/bf16_conv/bf16_block_tiles.h \
	trainer/backends/cpu/bf16_conv/bf16_plan.h \
	$(bf16_conv_sources) \
	trainer/backends/cpu/cpu_conv.c \
	trainer/backends/cpu/cpu_conv.h \
	trainer/backends/cpu/convs.c \
	trainer/backends/cpu/cpu.h \
	trainer/backends/cpu/onednn.c \
	trainer/backends/cpu/onednn.h \
	trainer/backends/cpu/onednn_conv.c \
	trainer/backends/cpu/onednn_lib.h \
	trainer/backends/cpu/onednn_matmul.c \
	trainer/backends/cpu/each.h \
	trainer/backends/cpu/emulate.c \
	trainer/backends/cpu/few_rows.c \
	trainer/backends/cpu/widen.c \
	trainer/backends/cpu/widen.h \
	trainer/backends/cpu/cpu_matmul.c \
	trainer/backends/cpu/cpu_matmul.h \
	trainer/backends/cpu/cpu_module.c \
	trainer/backends/cpu/cpu_pick.c \
	trainer/backends/cpu/cpu_pick.h \
	trainer/backends/cpu/simd.h \
	trainer/backends/cpu/team.c \
	trainer/backends/cpu/tiles.c \
	trainer/backends/cpu/turn16.h \
	trainer/backends/cpu/vec.h \
	trainer/backends/cpu/wgrad_bf16.c \
	trainer/backends/cpu/winograd/plan.h \
	trainer/backends/cpu/winograd/block.h \
	trainer/backends/cpu/own_convs.h \
	$(winograd_sources) \
	$(op_cpu)
EXTRA_DIST += $(cpu_sources)

if HAVE_ONEDNN
pkglib_LTLIBRARIES += dptrain_cpu.la
dptrain_cpu_la_SOURCES = $(cpu_sources)
dptrain_cpu_la_CPPFLAGS = $(AM_CPPFLAGS) $(ONEDNN_CPPFLAGS)
dptrain_cpu_la_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS) -fvisibility=hidden $(KERNEL_FLAGS) -Wno-psabi -fno-math-errno -fno-trapping-math
dptrain_cpu_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -no-undefined -Wl,-z,defs -Wl,--exclude-libs,ALL \
	-export-symbols-regex '^dptrain_backend_v1$$'
dptrain_cpu_la_LIBADD = libgraph.la $(ONEDNN_LIBS) -lm
endif
