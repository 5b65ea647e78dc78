/* bf16_conv.h: own bf16 convolutions by block products (bf16_block.h): forward and both gradients on NHWC activations,
 * any number of channels, kernels up to 7x7, strides 1 and 2. Each pass runs on either engine: the tile registers of
 * AMX or the dot products of AVX512_BF16. Does not know how an implementation is chosen. */
#ifndef DPT_BACKENDS_CPU_BF16_CONV_BF16_CONV_H
#define DPT_BACKENDS_CPU_BF16_CONV_BF16_CONV_H

#include "trainer/backends/cpu/bf16_conv/bf16_block.h"
#include "trainer/backends/cpu/onednn.h"

/* What a run needs besides its operands. */
struct bf16_conv {
	const struct cpu_module *module;
	enum bf16_engine engine;
	struct dnn_conv_spec spec;
	int threads;
};

bool bf16_conv_takes(const struct cpu_module *m, enum bf16_engine engine, const struct dnn_conv_spec *s);

/* Bytes of packed weights: those of forward and of the data gradient, which differ; 0 for the gradient of weights. */
size_t bf16_conv_packed_bytes(const struct bf16_conv *c);
void bf16_conv_pack(const struct bf16_conv *c, const float *krsc, void *packed);

size_t bf16_conv_workspace_bytes(const struct bf16_conv *c);

/* args as in dnn_conv_run. Bits of the results depend on the shape and the engine alone. */
void bf16_conv_run(const struct bf16_conv *c, const struct dnn_conv_args *args);

#endif
