/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h: how a convolution is cut into tiles and blocks of tiles, and where these lie in the workspace: what both
 * halves of the code, forward.c and wgrad.c, work by. */
#ifndef DPT_BACKENDS_CPU_WINOGRAD_PLAN_H
#define DPT_BACKENDS_CPU_WINOGRAD_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#define LANES 16
#define TILE 4	 /* results of a tile in each direction */
#define PATCH 6	 /* inputs of a tile in each direction */
#define POINTS 36 /* PATCH * PATCH */
#define PANEL 64  /* result channels of a panel, at most */
#define GAP LANES /* floats between matrices, so that those of one tile do not share a set of the cache */
#define STRIP_FLOATS (LANES * PANEL + GAP)

/* How a tensor [n,h,w,c] is cut into tiles. */
struct grid {
	int64_t n, h, w, c; /* of the tensor that is read or written */
	int64_t lanes;	    /* c, up to a multiple of LANES */
	int64_t rows, cols; /* tiles of an image */
	int64_t before;	    /* rows above and columns left of the tensor that the first tile covers */
	int64_t side;	    /* of a tile: TILE or PATCH */
};

struct winograd {
	struct grid in, out; /* inputs, 6 x 6, and results, 4 x 4; of wgrad x and dy */
	int64_t tiles, block, rows; /* rows: that the matrices of a block have room for */
	int64_t step_in, step_out, step_weights; /* floats from one of 36 matrices to the next */
	int64_t shared_floats, part_floats; /* workspace: of all parts together, then of each */
	int threads, parts; /* that share the work, and that have memory of their own */
	bool back;	    /* dgrad */
	bool together; /* all inputs are transformed before the first product, for there are few blocks of tiles */
	int64_t groups; /* wgrad: of tiles that have sums of their own; 0: sums are shared */
	bool strips; /* wgrad: sums of LANES filters and a panel of channels at a time, else of all */
	int64_t filters, channels; /* of the weights */
	const float *a, *b;
	float *result, *workspace;
	int64_t begin, count; /* wgrad: the tiles of the block that is worked on */
};

static inline int64_t min_of(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t round_up(int64_t n, int64_t grain)
{
	return (n + grain - 1) / grain * grain;
}

static inline int64_t divide_ceil(int64_t n, int64_t by)
{
	return (n + by - 1) / by;
}

/* Forward, and dgrad, which differs in its weights alone. */
void winograd_forward(struct winograd *w);
void winograd_wgrad(struct winograd *w);

#endif
