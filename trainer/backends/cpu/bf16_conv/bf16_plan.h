/* SPDX-License-Identifier: Apache-2.0 */
/* bf16_plan.h: how a bf16 convolution becomes block products.
 *
 * Source pixels are copied into a buffer of cells with zeros around them. A cell holds the terms of one tap of the
 * kernel, rounded up to whole steps: the channels of a pixel. Where these do not fill steps, a cell holds all channels
 * under one row of the kernel ("packed rows"), and a row of the kernel is one tap. With stride 2, pixels of even and
 * odd rows and columns are kept in separate planes. Result v of a unit reads cell v + offset for each tap, with the
 * same offsets for all v: any 16 consecutive results are the rows of one tile, one cell apart.
 *
 * A unit is a band of result rows of one image. Results are numbered along the rows of cells, which are a little wider
 * than those of results: the numbers between two rows are computed and dropped.
 *
 * A data gradient is a convolution of dy with the kernel turned round. With stride 2 it is four convolutions (phases),
 * one for each parity of row and column, each with the taps that reach it. */
#ifndef DPT_BACKENDS_CPU_BF16_CONV_BF16_PLAN_H
#define DPT_BACKENDS_CPU_BF16_CONV_BF16_PLAN_H

#include "tracker/base/round.h"
#include "trainer/backends/cpu/own_convs.h"

/* ---- bf16_block.c ----
 * The inner product of bf16 convolutions: up to 32 x 32 f32 sums of products of pairs of bf16 terms. Two engines
 * compute it: the tile registers of AMX, and the dot products of AVX512_BF16. Plain C emulates either instruction on
 * processors without it, so tests run the same loops on any machine. */

#define BLOCK_SIDE 16	/* rows of a tile, and columns of its sums */
#define BLOCK_PANEL 32	/* rows or columns of a block */
#define BLOCK_TERMS 32	/* terms of a step, in 16 pairs */
#define BLOCK_LINE 64	/* bytes of a row's terms in a step, and of a pair of terms of 16 columns */
#define BLOCK_SUMS 1024 /* floats of a block */
#define BLOCK_TILE 256	/* floats of one of its tiles */

/* a[i]: 16 rows of terms, a_row bytes apart. b[j]: 16 pairs of terms of 16 columns, b_row bytes apart. a[1] is NULL in
 * a block of 16 rows, b[1] in one of 16 columns. Step k reads a[i] + a_at[k] and b[j] + b_at[k]. sums: [2 tiles of
 * rows][2 tiles of columns][16][16]; with `add` the products are added to the present sums. Absent tiles are left
 * unchanged. */
struct bf16_block {
	const char *a[2], *b[2];
	int64_t a_row, b_row, steps;
	const int32_t *a_at, *b_at;
	float *sums;
	bool add;
};

typedef void block_fn(const struct bf16_block *o);

block_fn *block_pick(const struct cpu_module *m, enum bf16_engine engine);

/* ---- bf16_plan.c ---- */

#define STRIDE_MOST 2
#define PHASES_MOST (STRIDE_MOST * STRIDE_MOST)
#define KERNEL_MOST 7
#define STEP_BYTES (BLOCK_TERMS * BLOCK_PANEL * 2) /* bytes of packed weights per step */

/* Along one axis, result i of the phase is out_first + i * out_step. Its tap j multiplies source element in_first + i *
 * in_step + j with kernel element tap_first + j * tap_step. */
struct phase_axis {
	int64_t results, out_first, in_first, taps, tap_first, tap_step;
};

struct conv_phase {
	struct phase_axis y, x;
	int64_t taps;		   /* cells that a result reads */
	int64_t steps, first_step; /* steps of a block product; number of the first phase's step 0 */
};

struct conv_plan {
	struct dnn_conv_spec s;
	int64_t n, h, w, d;	   /* source: images, rows, columns, channels */
	int64_t out_h, out_w, e;   /* results */
	int64_t in_step, out_step; /* distance in pixels between results, in the source and in the output */
	int64_t pixels;		   /* pixels of a source that is one line, cut into rows; else 0 */
	struct conv_phase phase[PHASES_MOST];
	int phases;
	int64_t steps; /* steps of all phases */

	/* cells */
	bool packed_rows;
	int64_t terms, cell; /* terms of a tap; the same, rounded up to whole steps */
	int64_t top, left;   /* source row and column of the first cell of an image */
	int64_t planes_y, planes_x;
	int64_t pitch, plane_rows, plane_cells; /* cells of a row, rows, cells of a plane */
	int64_t unit_cells;

	/* units */
	int64_t rows, bands, units; /* result rows of a band; bands of an image; all bands of all images */
	int64_t columns;	    /* results of a row */
	int64_t results;	    /* result numbers of a unit, including the dropped ones between rows */
};

/* s: any pass. results_most: result numbers per unit, about; a unit has at least one row of results. */
void plan_conv(struct conv_plan *p, const struct dnn_conv_spec *s, int64_t results_most);

/* Bytes of packed weights; 0 for the gradient of weights. */
size_t plan_weight_bytes(const struct conv_plan *p);

/* Returns the cell that tap t (row by row) of a phase reads for result 0 of a unit. */
int64_t plan_tap_cell(const struct conv_plan *p, const struct conv_phase *f, int64_t t);

/* One row of results of a unit: its first pixel, counted over all images, and the number of its results, which are
 * out_step pixels apart. */
struct result_row {
	int64_t pixel, results;
};

struct result_row plan_result_row(const struct conv_plan *p, const struct conv_phase *f, int64_t unit, int64_t row);

/* Return the elements of the source, and of the results' gradient, that units read. Both are contiguous. */
struct cpu_range plan_source_range(const struct conv_plan *p, struct cpu_range units);
struct cpu_range plan_result_range(const struct conv_plan *p, struct cpu_range units);

/* Prefetches what the next units read into the second-level cache, step by step while others are computed. */
struct plan_ahead {
	const char *at, *end;
};

struct plan_ahead plan_look_ahead(const void *elements, struct cpu_range range);

static inline void plan_prefetch(struct plan_ahead *a, int64_t lines)
{
	for (int64_t i = 0; i < lines && a->at < a->end; i++, a->at += BLOCK_LINE)
		__builtin_prefetch(a->at, 0, 2);
}

/* Copies the part of the source that a unit reads into its cells. */
void plan_fill_cells(const struct conv_plan *p, const uint16_t *source, int64_t unit, uint16_t *cells);

static inline int64_t plan_panels(int64_t columns)
{
	return divide_up(columns, BLOCK_PANEL);
}

/* bf16_forward.c: results of a forward pass or a data gradient. */
size_t bf16_forward_workspace_bytes(const struct bf16_conv *c);
void bf16_forward_run(const struct bf16_conv *c, const struct dnn_conv_args *args);

/* wgrad.c */
size_t bf16_wgrad_workspace_bytes(const struct bf16_conv *c);
void bf16_wgrad_run(const struct bf16_conv *c, const struct dnn_conv_args *args);

/* The plan of bf16_forward.c, which determines how bf16_conv.c packs. */
void bf16_forward_plan(struct conv_plan *p, const struct bf16_conv *c);

#endif
