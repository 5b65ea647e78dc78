/* SPDX-License-Identifier: Apache-2.0 */
/* bn_cpu.h: state and coefficients shared by the cpu kernels of batch norm. The loops over data are in bn_sums_cpu.c
 * and bn_cpu.c, the per-channel parts in bn_channels_cpu.c. */
#ifndef DPT_OPS_BN_CPU_H
#define DPT_OPS_BN_CPU_H

#include "trainer/backends/cpu/cpu.h"
#include "trainer/ops/bn/bn.h"

enum { MASK_NONE, MASK_FROM_X, MASK_FROM_Y }; /* how to determine whether the output was positive */

struct bn_state {
	cpu_part_fn *loop;
	struct bn_attr attr;
	int64_t rows, c, padded; /* padded: c rounded up to whole vectors, the length of each coefficient array */
	int parts;
	bool bf16;
	/* set per run */
	const void *x, *dy, *dy2, *y_in, *residual;
	void *out;
	bool past;					     /* stores bypass the caches */
	float *mean, *rstd, *scale, *shift, *slope, *offset; /* in the workspace */
	float *rows_sum; /* [parts][2 padded] in the workspace, with many channels */
	double *sums;	 /* [parts][2c] in the workspace */
};

/* Creates the state of a node. large: the number of operands that are whole activations, all of one type. The last of
 * these inputs is the tensor that is normalised. */
int bn_cpu_new(const struct kernel_env *env, struct node *n, struct cpu_operands large, struct bn_state **ret,
	       struct err *err);

/* Sets where one run writes activations or gradients; NULL: nowhere. Large outputs bypass the caches: they would be
 * evicted before they are read, and non-temporal stores need not read the lines first. */
void bn_cpu_write(struct bn_state *s, void *out);

/* Size and placement of coefficient arrays in the workspace, in order: scale, shift, mean, rstd, slope, offset. */
size_t bn_cpu_coef_bytes(const struct bn_state *s, int arrays);
void bn_cpu_coef_place(struct bn_state *s, void *workspace);

/* Fills the first four, for the forward pass and for the mask in the backward pass. */
void bn_cpu_coef_forward(struct bn_state *s, const double *stat, const float *gamma, const float *beta);

double bn_cpu_rstd(const double *stat, int64_t c, int64_t i, double eps); /* of channel i of c; 0 if there are no
									   * samples */

#endif
