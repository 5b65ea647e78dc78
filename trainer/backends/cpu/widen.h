/* SPDX-License-Identifier: Apache-2.0 */
/* widen.h: bf16 operands as f32 ones. Where the library has no bf16 products for the processor, copies of the operands
 * are computed with in f32 and results are rounded: as exact as bf16 products with f32 sums, no faster than f32. Knows
 * nothing of products and convolutions. */
#ifndef DPT_BACKENDS_CPU_WIDEN_H
#define DPT_BACKENDS_CPU_WIDEN_H

#include "trainer/backends/cpu/cpu.h"

/* Rows of bf16, `step` elements from one to the next (0: no gaps). In f32 they have no gaps. */
struct widen_rows {
	int64_t rows, columns, step;
};

struct widen_copies { /* what a computation of two operands has copied */
	const struct cpu_module *module;
	int threads;
	struct widen_rows a, b, out; /* one without rows is not copied */
	bool add;		     /* to what out holds */
};

struct widen_operands {
	const void *a, *b;
	void *out;
};

size_t widen_bytes(const struct widen_copies *c); /* of all copies */

/* Operands that are copied become their copies in memory, the result's first. */
void widen_in(const struct widen_copies *c, void *memory, struct widen_operands *o);
void widen_out(const struct widen_copies *c, const struct widen_operands *o, void *out);

/* n values of f32 become what bf16 would hold of them. */
void widen_round(const struct widen_copies *c, void *f32, int64_t n);

#endif
