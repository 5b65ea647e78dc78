/* SPDX-License-Identifier: Apache-2.0 */
/* attention_cpu.h: state shared by the cpu kernels of attention. The loops of attention_cpu.c support every shape and
 * compute in f32. Those of attention_bf16_cpu.c form products from pairs of bf16, on processors that support it. */
#ifndef DPT_OPS_ATTENTION_CPU_H
#define DPT_OPS_ATTENTION_CPU_H

#include "trainer/backends/cpu/cpu.h"
#include "trainer/ops/attention/attention.h"

#define ATTENTION_QUERIES 32   /* per block: two vectors */
#define ATTENTION_BF16_WIDE 32 /* channels: a vector of bf16, two of sums */

struct attention_state {
	const struct attention_attr *attr;
	cpu_part_fn *loop;
	int64_t n_heads; /* over all sequences */
	int64_t c, d, seq, heads;
	int64_t width, keys;  /* d rounded up to whole vectors, seq rounded up to whole blocks */
	size_t scratch_bytes; /* per part */
	int parts;
	bool bf16, bf16_products;
	bool spans;	      /* positions do not see all before them */
	enum cpu_tiles tiles; /* AMX support; used with bf16_products */
	/* set per run */
	struct dropout_draw draw;
	const int32_t *places; /* NULL: none */
	const void *qkv, *y_in, *dy;
	const float *lse_in;
	void *y, *dqkv;
	float *lse;
	char *scratch;
};

bool attention_bf16_takes(const struct kernel_env *env, const struct attention_state *s);
size_t attention_bf16_scratch_bytes(const struct attention_state *s);
void attention_bf16_loop(void *state, int part, int parts);
void attention_bf16_grad_loop(void *state, int part, int parts);

#endif
