/* winograd.h: own 3x3 convolutions of stride 1 in f32 by Winograd's minimal filtering F(4x4,3x3): a tile of 4 x 4
 * results takes 36 multiplications a channel instead of 144 (Lavin and Gray, "Fast Algorithms for Convolutional Neural
 * Networks", 2015). Forward and both gradients, on processors with AVX-512, any number of channels. Rounding is some
 * five times the direct one's. Knows nothing of how an implementation is chosen. */
#ifndef DPT_BACKENDS_CPU_WINOGRAD_H
#define DPT_BACKENDS_CPU_WINOGRAD_H

#include "trainer/backends/cpu/cpu.h"
#include "trainer/backends/cpu/onednn.h"

bool winograd_takes(const struct cpu_module *m, const struct dnn_conv_spec *s);
size_t winograd_workspace_bytes(const struct dnn_conv_spec *s, int threads);

/* args as in dnn_conv_run, but that weights are plain, KRSC. The bits of the result depend on the shape and, forward
 * and dgrad, on nothing else. */
void winograd_run(const struct dnn_conv_spec *s, int threads, const struct dnn_conv_args *args);

#endif
