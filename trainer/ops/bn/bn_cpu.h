/* bn_cpu.h: what the cpu kernels of batch norm share: their state, and the coefficients that statistics become. The
 * loops over data are in bn_sums_cpu.c and bn_cpu.c, what is done once a channel in bn_channels_cpu.c. */
#ifndef DPT_OPS_BN_CPU_H
#define DPT_OPS_BN_CPU_H

#include "trainer/backends/cpu/cpu.h"
#include "trainer/ops/bn/bn.h"

enum { MASK_NONE, MASK_FROM_X, MASK_FROM_Y }; /* where it is seen whether the output was positive */

struct bn_state {
	cpu_part_fn *loop;
	struct bn_attr attr;
	int64_t rows, c, padded; /* padded: c rounded up to whole vectors, the length of each coefficient array */
	int parts;
	bool bf16;
	/* of one run */
	const void *x, *dy, *dy2, *y_in, *residual;
	void *out;
	bool past; /* what is written goes past the caches */
	float *mean, *rstd, *scale, *shift, *slope, *offset; /* in the workspace */
	float *rows_sum; /* [parts][2 padded] in the workspace, when there are many channels */
	double *sums;	 /* [parts][2c] in the workspace */
};

/* State of a node. large: how many of its operands are whole activations, all of one type; the last of those it reads
 * is the tensor that is normalised. */
int bn_cpu_new(const struct kernel_env *env, struct node *n, struct cpu_operands large, struct bn_state **ret,
	       struct err *err);

/* The activations or gradients of one run go there; NULL: nowhere. Large ones go past the caches: they will have left
 * those before they are read, and need not be read before they are written. */
void bn_cpu_write(struct bn_state *s, void *out);

/* So many coefficient arrays in the workspace, one after another: scale, shift, mean, rstd, slope, offset. */
size_t bn_cpu_coef_bytes(const struct bn_state *s, int arrays);
void bn_cpu_coef_place(struct bn_state *s, void *workspace);

/* The first four, as the forward pass uses them and the backward pass needs them again for the mask. */
void bn_cpu_coef_forward(struct bn_state *s, const double *stat, const float *gamma, const float *beta);

double bn_cpu_rstd(const double *stat, int64_t c, int64_t i, double eps); /* of channel i of c; 0 without samples */

#endif
