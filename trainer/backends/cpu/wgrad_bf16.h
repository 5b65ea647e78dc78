/* wgrad_bf16.h: an own weight gradient for bf16 on processors with AVX512_BF16, where the library's reaches half of
 * what the dot-product instruction gives. Takes 16-fold channel counts, kernels of 1 and 3, strides of 1 and 2. */
#ifndef DPT_BACKENDS_CPU_WGRAD_BF16_H
#define DPT_BACKENDS_CPU_WGRAD_BF16_H

#include "trainer/backends/cpu/cpu.h"
#include "trainer/backends/cpu/onednn.h"

bool wgrad_bf16_takes(const struct cpu_module *m, const struct dnn_conv_spec *s);
size_t wgrad_bf16_workspace_bytes(const struct dnn_conv_spec *s, int threads);

/* args as in dnn_conv_run. The bits of the result depend on the shape and the number of threads alone. */
void wgrad_bf16_run(const struct dnn_conv_spec *s, int threads, const struct dnn_conv_args *args);

#endif
