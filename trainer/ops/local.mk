# SPDX-License-Identifier: Apache-2.0
# One folder and one paragraph per op: sources of every program, and of the cpu module (op_cpu).
# cuda/local.mk compiles the kernels of the cuda module (op_cuda).
libtrainer_la_SOURCES += trainer/ops/ops.h trainer/ops/ops.def trainer/ops/ops.c trainer/ops/ops_shared.c trainer/ops/casts.def
op_cpu =
op_cuda =

libtrainer_la_SOURCES += trainer/ops/accumulate/accumulate.h trainer/ops/accumulate/accumulate.c
op_cpu += trainer/ops/accumulate/accumulate_cpu.c
op_cuda += trainer/ops/accumulate/accumulate_cuda.cu

libtrainer_la_SOURCES += trainer/ops/add/add.h trainer/ops/add/add.c
op_cpu += trainer/ops/add/add_cpu.c
op_cuda += trainer/ops/add/add_cuda.cu

libtrainer_la_SOURCES += trainer/ops/attention_decode/attention_decode.h trainer/ops/attention_decode/attention_decode.c
op_cpu += trainer/ops/attention_decode/attention_decode_cpu.c
op_cuda += trainer/ops/attention_decode/attention_decode_cuda.cu

libtrainer_la_SOURCES += trainer/ops/attention/attention.h trainer/ops/attention/attention.c
op_cpu += trainer/ops/attention/attention_bf16_cpu.c trainer/ops/attention/attention_cpu.c
op_cpu += trainer/ops/attention/attention_cpu.h
op_cuda += trainer/ops/attention/attention_cuda.cu trainer/ops/attention/flash_cuda.cu
op_cuda += trainer/ops/attention/tiled_cuda.cu
EXTRA_DIST += trainer/ops/attention/attention_cuda.h

libtrainer_la_SOURCES += trainer/ops/avgpool/avgpool.h trainer/ops/avgpool/avgpool.c
op_cpu += trainer/ops/avgpool/avgpool_cpu.c
op_cuda += trainer/ops/avgpool/avgpool_cuda.cu

libtrainer_la_SOURCES += trainer/ops/bn/bn.h trainer/ops/bn/bn_math.h trainer/ops/bn/bn.c
libtrainer_la_SOURCES += trainer/ops/bn/bn_ref.c
op_cpu += trainer/ops/bn/bn_channels_cpu.c trainer/ops/bn/bn_cpu.c trainer/ops/bn/bn_cpu.h
op_cpu += trainer/ops/bn/bn_sums_cpu.c trainer/ops/bn/bn_tile.h
op_cuda += trainer/ops/bn/bn_cuda.cu

libtrainer_la_SOURCES += trainer/ops/cast/cast.h trainer/ops/cast/float16.h trainer/ops/cast/cast.c
op_cpu += trainer/ops/cast/cast_cpu.c
op_cuda += trainer/ops/cast/cast_cuda.cu

libtrainer_la_SOURCES += trainer/ops/collectives/collectives.h trainer/ops/collectives/collectives_host.h
libtrainer_la_SOURCES += trainer/ops/collectives/collectives.c
op_cpu += trainer/ops/collectives/collectives_cpu.c
op_cuda += trainer/ops/collectives/collectives_cuda.cu

libtrainer_la_SOURCES += trainer/ops/conv/conv.h trainer/ops/conv/conv.c
op_cpu += trainer/ops/conv/conv_cpu.c
op_cuda += trainer/ops/conv/conv_cuda.cu

libtrainer_la_SOURCES += trainer/ops/copy/copy.h trainer/ops/copy/copy_host.h trainer/ops/copy/copy.c
op_cpu += trainer/ops/copy/copy_cpu.c
op_cuda += trainer/ops/copy/copy_cuda.cu

libtrainer_la_SOURCES += trainer/ops/dropout/dropout.h trainer/ops/dropout/dropout.c
op_cpu += trainer/ops/dropout/dropout_cpu.c
op_cuda += trainer/ops/dropout/dropout_cuda.cu

libtrainer_la_SOURCES += trainer/ops/ema/ema.h trainer/ops/ema/ema.c
op_cpu += trainer/ops/ema/ema_cpu.c
op_cuda += trainer/ops/ema/ema_cuda.cu

libtrainer_la_SOURCES += trainer/ops/embed/embed.h trainer/ops/embed/embed.c
op_cpu += trainer/ops/embed/embed_cpu.c
op_cuda += trainer/ops/embed/embed_cuda.cu

libtrainer_la_SOURCES += trainer/ops/gelu/gelu.h trainer/ops/gelu/gelu.c
op_cpu += trainer/ops/gelu/gelu_cpu.c
op_cuda += trainer/ops/gelu/gelu_cuda.cu

libtrainer_la_SOURCES += trainer/ops/glu/glu.h trainer/ops/glu/glu.c
op_cpu += trainer/ops/glu/glu_cpu.c
op_cuda += trainer/ops/glu/glu_cuda.cu

libtrainer_la_SOURCES += trainer/ops/step_guard/step_guard.h trainer/ops/step_guard/step_guard_math.h trainer/ops/step_guard/step_guard.c
op_cpu += trainer/ops/step_guard/step_guard_cpu.c
op_cuda += trainer/ops/step_guard/step_guard_cuda.cu

libtrainer_la_SOURCES += trainer/ops/layernorm/layernorm.h trainer/ops/layernorm/layernorm.c
op_cpu += trainer/ops/layernorm/layernorm_cpu.c
op_cuda += trainer/ops/layernorm/layernorm_cuda.cu

libtrainer_la_SOURCES += trainer/ops/linear/linear.h trainer/ops/linear/linear.c
op_cpu += trainer/ops/linear/linear_cpu.c
op_cuda += trainer/ops/linear/linear_cuda.cu

libtrainer_la_SOURCES += trainer/ops/lmhead/lmhead.h trainer/ops/lmhead/lmhead.c
op_cpu += trainer/ops/lmhead/lmhead_cpu.c
op_cuda += trainer/ops/lmhead/lmhead_cuda.cu

libtrainer_la_SOURCES += trainer/ops/maxpool/maxpool.h trainer/ops/maxpool/maxpool.c
op_cpu += trainer/ops/maxpool/maxpool_cpu.c
op_cuda += trainer/ops/maxpool/maxpool_cuda.cu

libtrainer_la_SOURCES += trainer/ops/norm/exact.h trainer/ops/norm/norm.h 
libtrainer_la_SOURCES += trainer/ops/norm/norm_host.h trainer/ops/norm/norm.c trainer/ops/norm/norm_add.c
op_cpu += trainer/ops/norm/norm_cpu.c
op_cuda += trainer/ops/norm/norm_cuda.cu

libtrainer_la_SOURCES += trainer/ops/pack/pack.h trainer/ops/pack/pack.c
op_cpu += trainer/ops/pack/pack_cpu.c
op_cuda += trainer/ops/pack/pack_cuda.cu

libtrainer_la_SOURCES += trainer/ops/places/places.h trainer/ops/places/places.c
op_cpu += trainer/ops/places/places_cpu.c
op_cuda += trainer/ops/places/places_cuda.cu

libtrainer_la_SOURCES += trainer/ops/relu/relu.h trainer/ops/relu/relu.c
op_cpu += trainer/ops/relu/relu_cpu.c
op_cuda += trainer/ops/relu/relu_cuda.cu

libtrainer_la_SOURCES += trainer/ops/rope/rope.h trainer/ops/rope/rope.c
op_cpu += trainer/ops/rope/rope_cpu.c
op_cuda += trainer/ops/rope/rope_cuda.cu

libtrainer_la_SOURCES += trainer/ops/scale/scale.h trainer/ops/scale/scale.c
op_cpu += trainer/ops/scale/scale_cpu.c
op_cuda += trainer/ops/scale/scale_cuda.cu

libtrainer_la_SOURCES += trainer/ops/partial_sums/partial_sums.h trainer/ops/partial_sums/partial_sums_host.h trainer/ops/partial_sums/partial_sums.c
op_cpu += trainer/ops/partial_sums/partial_sums_cpu.c
op_cuda += trainer/ops/partial_sums/partial_sums_cuda.cu

libtrainer_la_SOURCES += trainer/ops/update/update.h trainer/ops/update/update.c
op_cpu += trainer/ops/update/update_cpu.c
op_cuda += trainer/ops/update/update_cuda.cu

libtrainer_la_SOURCES += trainer/ops/watch/watch.h trainer/ops/watch/watch.c
op_cpu += trainer/ops/watch/watch_cpu.c
op_cuda += trainer/ops/watch/watch_cuda.cu

libtrainer_la_SOURCES += trainer/ops/xent/xent.h trainer/ops/xent/xent.c
op_cpu += trainer/ops/xent/xent_cpu.c
op_cuda += trainer/ops/xent/xent_cuda.cu
