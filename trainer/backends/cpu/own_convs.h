/* SPDX-License-Identifier: Apache-2.0 */
/* own_convs.h: own implementations of convolutions. They are independent of how an implementation is chosen.
 *   winograd    3x3 of stride 1 by Winograd's minimal filtering F(4x4,3x3): a tile of 4 x 4 results takes 36
 *               multiplications a channel instead of 144 (Lavin and Gray, "Fast Algorithms for Convolutional Neural
 *               Networks", 2015). Forward and both gradients, on processors with AVX-512, any number of channels.
 *               Computes in f32, also with bf16 activations, because transformed values need more digits than bf16 has.
 *               Rounding in f32 is some five times the direct one's.
 *   wgrad_bf16  a weight gradient for bf16 on processors with AVX512_BF16, where the library's reaches half of what the
 *               dot-product instruction gives. Takes 16-fold channel counts, kernels of 1 and 3, strides of 1 and 2.
 *   bf16_conv   bf16 by block products (bf16_plan.h): forward and both gradients on NHWC activations, any number of
 *               channels, kernels up to 7x7, strides 1 and 2. Each pass runs on either engine: the tile registers of
 *               AMX or the dot products of AVX512_BF16. */
#ifndef DPT_BACKENDS_CPU_OWN_CONVS_H
#define DPT_BACKENDS_CPU_OWN_CONVS_H

#include "trainer/backends/cpu/cpu.h"
#include "trainer/backends/cpu/onednn.h"

bool winograd_takes(const struct cpu_module *m, const struct dnn_conv_spec *s);
size_t winograd_workspace_bytes(const struct dnn_conv_spec *s, int threads);

/* Bytes of packed weights, which are KRSC in bf16; 0 for f32, where weights are plain KRSC. */
size_t winograd_packed_bytes(const struct dnn_conv_spec *s);
void winograd_pack(const struct dnn_conv_spec *s, int threads, const float *krsc, void *packed);

/* args as in dnn_conv_run, with weights as said above. For forward and dgrad, the bits of the result depend
 * only on the shape. */
void winograd_run(const struct dnn_conv_spec *s, int threads, const struct dnn_conv_args *args);

bool wgrad_bf16_takes(const struct cpu_module *m, const struct dnn_conv_spec *s);
size_t wgrad_bf16_workspace_bytes(const struct dnn_conv_spec *s, int threads);

/* args as in dnn_conv_run. The bits of the result depend only on the shape and the number of threads. */
void wgrad_bf16_run(const struct dnn_conv_spec *s, int threads, const struct dnn_conv_args *args);

enum bf16_engine { BF16_DOTS, BF16_TILES };

/* Returns true if $DPTRAIN_CPU_DOTS is "emulate": plain C may emulate bf16 dot products, for tests. For tiles see
 * $DPTRAIN_CPU_TILES (amx.h). */
bool block_asks_plain_dots(void);

/* Returns true if the module may use the engine: the processor has it, or the environment requests its emulation. */
bool block_has(const struct cpu_module *m, enum bf16_engine engine);

/* The memory that a run needs in addition to its operands. */
struct bf16_conv {
	const struct cpu_module *module;
	enum bf16_engine engine;
	struct dnn_conv_spec spec;
	int threads;
};

bool bf16_conv_takes(const struct cpu_module *m, enum bf16_engine engine, const struct dnn_conv_spec *s);

/* Returns the bytes of packed weights, which differ between forward and the data gradient; 0 for the gradient of
 * weights. */
size_t bf16_conv_packed_bytes(const struct bf16_conv *c);
void bf16_conv_pack(const struct bf16_conv *c, const float *krsc, void *packed);

size_t bf16_conv_workspace_bytes(const struct bf16_conv *c);

/* args as in dnn_conv_run. The bits of the results depend only on the shape and the engine. */
void bf16_conv_run(const struct bf16_conv *c, const struct dnn_conv_args *args);

#endif
