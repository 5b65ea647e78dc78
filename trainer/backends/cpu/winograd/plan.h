/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h: divides a convolution into tiles and blocks of tiles, and places them in the workspace. Both forward.c and
 * wgrad.c use it. */
#ifndef DPT_BACKENDS_CPU_WINOGRAD_PLAN_H
#define DPT_BACKENDS_CPU_WINOGRAD_PLAN_H

#include <stdbool.h>

#include "tracker/base/round.h"

#define LANES 16
#define TILE 4	  /* results of a tile in each direction */
#define PATCH 6	  /* inputs of a tile in each direction */
#define POINTS 36 /* PATCH * PATCH */
#define PANEL 64  /* result channels per panel, at most */
#define GAP LANES /* floats between matrices, so that those of one tile use different cache sets */
#define STRIP_FLOATS (LANES * PANEL + GAP)

/* The division of a tensor [n,h,w,c] into tiles. */
struct grid {
	int64_t n, h, w, c; /* shape of the tensor that is read or written */
	int64_t lanes;	    /* c, up to a multiple of LANES */
	int64_t rows, cols; /* tiles of an image */
	int64_t before;	    /* rows above and columns left of the tensor that the first tile covers */
	int64_t side;	    /* side of a tile: TILE or PATCH */
	bool bf16;	    /* else f32 */
};

struct winograd {
	struct grid in, out;			 /* inputs, 6 x 6, and results, 4 x 4; of wgrad x and dy */
	int64_t tiles, block, rows;		 /* rows: capacity of the matrices of a block */
	int64_t step_in, step_out, step_weights; /* floats between the 36 matrices */
	int64_t shared_floats, part_floats;	 /* workspace of all threads together, then of each one */
	int threads, parts;			 /* threads that share the work; threads with their own memory */
	bool back;				 /* dgrad */
	bool together;	/* all inputs are transformed before the first product, because there are few blocks of tiles */
	int64_t groups; /* wgrad: groups of tiles with their own sums; 0: sums are shared */
	bool strips;	/* wgrad: sums of LANES filters and a panel of channels at a time, else all sums */
	int64_t filters, channels; /* channels of the weights */
	const void *a, *b;
	void *result;
	float *workspace;
	int64_t begin, count; /* wgrad: the current tiles of the block */
};

/* Forward, and dgrad, which differs only in its weights. */
void winograd_forward(struct winograd *w);
void winograd_wgrad(struct winograd *w);

/* Stores the weights b as bf16 into result. */
void winograd_round(struct winograd *w);

#endif
