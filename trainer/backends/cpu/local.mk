# The cpu module: oneDNN and own loops, one OpenMP pool for both.
cpu_sources = \
	trainer/backends/cpu/conv.c \
	trainer/backends/cpu/conv.h \
	trainer/backends/cpu/convs.c \
	trainer/backends/cpu/convs.h \
	trainer/backends/cpu/cpu.h \
	trainer/backends/cpu/dnn.c \
	trainer/backends/cpu/dnn.h \
	trainer/backends/cpu/dnn_conv.c \
	trainer/backends/cpu/dnn_lib.h \
	trainer/backends/cpu/dnn_matmul.c \
	trainer/backends/cpu/each.h \
	trainer/backends/cpu/emulate.c \
	trainer/backends/cpu/emulate.h \
	trainer/backends/cpu/matmul.c \
	trainer/backends/cpu/matmul.h \
	trainer/backends/cpu/module.c \
	trainer/backends/cpu/pick.c \
	trainer/backends/cpu/pick.h \
	trainer/backends/cpu/pick_conv.c \
	trainer/backends/cpu/simd.h \
	trainer/backends/cpu/team.c \
	trainer/backends/cpu/vec.h \
	trainer/backends/cpu/wgrad_bf16.c \
	trainer/backends/cpu/wgrad_bf16.h \
	trainer/ops/accumulate/accumulate_cpu.c \
	trainer/ops/add/add_cpu.c \
	trainer/ops/adamw/adamw_cpu.c \
	trainer/ops/allreduce/allreduce_cpu.c \
	trainer/ops/attend/attend_cpu.c \
	trainer/ops/attention/attention_bf16_cpu.c \
	trainer/ops/attention/attention_cpu.c \
	trainer/ops/attention/attention_cpu.h \
	trainer/ops/avgpool/avgpool_cpu.c \
	trainer/ops/bn/bn_channels_cpu.c \
	trainer/ops/bn/bn_cpu.c \
	trainer/ops/bn/bn_cpu.h \
	trainer/ops/bn/bn_sums_cpu.c \
	trainer/ops/bn/bn_tile.h \
	trainer/ops/cast/cast_cpu.c \
	trainer/ops/conv/conv_cpu.c \
	trainer/ops/dropout/dropout_cpu.c \
	trainer/ops/embed/embed_cpu.c \
	trainer/ops/gelu/gelu_cpu.c \
	trainer/ops/lamb/lamb_cpu.c \
	trainer/ops/lars/lars_cpu.c \
	trainer/ops/layernorm/layernorm_cpu.c \
	trainer/ops/ema/ema_cpu.c \
	trainer/ops/guard/guard_cpu.c \
	trainer/ops/linear/linear_cpu.c \
	trainer/ops/lmhead/lmhead_cpu.c \
	trainer/ops/maxpool/maxpool_cpu.c \
	trainer/ops/norm/norm_cpu.c \
	trainer/ops/pack/pack_cpu.c \
	trainer/ops/relu/relu_cpu.c \
	trainer/ops/sgd/sgd_cpu.c \
	trainer/ops/xent/xent_cpu.c
EXTRA_DIST += $(cpu_sources)

if HAVE_ONEDNN
pkglib_LTLIBRARIES += dptrain_cpu.la
dptrain_cpu_la_SOURCES = $(cpu_sources)
dptrain_cpu_la_CPPFLAGS = $(AM_CPPFLAGS) $(ONEDNN_CPPFLAGS)
dptrain_cpu_la_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS) -fvisibility=hidden -Wno-psabi -fno-math-errno -fno-trapping-math
dptrain_cpu_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -no-undefined -Wl,-z,defs -Wl,--exclude-libs,ALL \
	-export-symbols-regex '^dptrain_backend_v1$$'
dptrain_cpu_la_LIBADD = libgraph.la $(ONEDNN_LIBS) -lm
endif
