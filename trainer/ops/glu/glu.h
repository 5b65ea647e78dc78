/* SPDX-License-Identifier: Apache-2.0 */
/* glu.h: the gated unit of an MLP (Shazeer 2020): y = gate * sigmoid(u) * up, u = slope * gate * (1 + cubic * gate^2).
 * GLU_SILU makes it SwiGLU, GLU_GELU GeGLU with GELU's tanh form, which is this product exactly.
 *   glu       in gate [R,F], up [R,F]       out y [R,F]
 *   glu_grad  in dy [R,F], gate, up         out dgate [R,F], dup [R,F]
 * Without up, gate is [R,2F] and holds both side by side; dgate likewise. */
#ifndef DPT_OPS_GLU_H
#define DPT_OPS_GLU_H

#include "trainer/graph/graph.h"

struct glu_attr {
	double slope, cubic;
};

#define GLU_SILU ((struct glu_attr){ 1, 0 })
#define GLU_GELU ((struct glu_attr){ 1.59576912160573071176 /* 2 sqrt(2/pi) */, 0.044715 })

/* up may be NULL. */
struct tensor *glu_add(struct graph *g, struct tensor *gate, struct tensor *up, struct glu_attr attr);

/* F, and the distance between rows of gate. */
static inline int64_t glu_width(const struct tensor *gate, const struct tensor *up)
{
	return up ? gate->shape.dim[1] : gate->shape.dim[1] / 2;
}

#endif
