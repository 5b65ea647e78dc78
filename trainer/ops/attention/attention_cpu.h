/* attention_cpu.h: what the cpu kernels of attention share. The loops of attention_cpu.c take every shape and work in
 * f32; those of attention_bf16_cpu.c form their products from pairs of bf16, where the processor has them. */
#ifndef DPT_OPS_ATTENTION_CPU_H
#define DPT_OPS_ATTENTION_CPU_H

#include "trainer/backends/cpu/cpu.h"
#include "trainer/ops/attention/attention.h"

#define ATTENTION_QUERIES 32   /* of a block: two vectors */
#define ATTENTION_BF16_WIDE 32 /* channels: a vector of bf16, two of sums */

struct attention_state {
	const struct attention_attr *attr;
	cpu_part_fn *loop;
	int64_t n_heads; /* of all sequences */
	int64_t c, d, seq, heads;
	int64_t width, keys; /* d rounded up to whole vectors of the products, seq to whole blocks */
	size_t scratch_bytes; /* of a part */
	int parts;
	bool bf16, bf16_products;
	enum cpu_tiles tiles; /* of bf16_products */
	/* of one run */
	struct dropout_draw draw;
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
