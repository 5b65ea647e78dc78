/* SPDX-License-Identifier: Apache-2.0 */
/* widen.h: bf16 and f16 operands as f32 ones. If the library has no bf16 products for the processor, it computes with
 * f32 copies of the operands, and results are rounded. This is as exact as bf16 products with f32 sums, and no faster
 * than f32. Independent of products and convolutions. */
#ifndef DPT_BACKENDS_CPU_WIDEN_H
#define DPT_BACKENDS_CPU_WIDEN_H

#include "trainer/backends/cpu/cpu.h"

/* Rows of bf16 with `step` elements between them (0: no gaps). In f32 they have no gaps. */
struct widen_rows {
	int64_t rows, columns, step;
};

struct widen_copies { /* the copies for a computation with two operands */
	const struct cpu_module *module;
	int threads;
	struct widen_rows a, b, out; /* an operand without rows is not copied */
	bool add;		     /* add to the present content of out */
};

struct widen_operands {
	const void *a, *b;
	void *out;
};

size_t widen_bytes(const struct widen_copies *c); /* of all copies */

/* Replaces copied operands by their copies in memory, the result's first. */
void widen_in(const struct widen_copies *c, void *memory, struct widen_operands *o);
void widen_out(const struct widen_copies *c, const struct widen_operands *o, void *out);

/* Rounds n values of f32 to what bf16 can hold. */
void widen_round(const struct widen_copies *c, void *f32, int64_t n);

/* Converts n values, rounded to nearest even; finite values out of range become infinities, NaN stays NaN. The parts
 * of up to `threads` threads. */
void widen_f16(const struct cpu_module *m, int threads, const void *f16, float *f32, int64_t n);
void widen_to_f16(const struct cpu_module *m, int threads, const float *f32, void *f16, int64_t n);

#endif
