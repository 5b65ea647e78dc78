/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.h: assigns samples to ranks and steps: pure functions of (seed, epoch, step, rank, world), so that a run can
 * resume anywhere, with any number of ranks.
 *
 * Step k (from 0) of epoch e takes positions [k*G, min((k+1)*G, N)) of the epoch's order; G is the global batch. The
 * order is one of enum sampler_order, keyed by (seed, e), or 0, 1, 2, … without shuffling (evaluation). A global batch
 * is split over the ranks into contiguous parts; sizes differ by at most one, the larger ones first. A part is split
 * into micro-batches of `micro` samples; the last one may be shorter. With leaves (graph/reduction_tree.h) the global
 * batch is cut into leaves of `leaf` samples, and a part consists of whole leaves. If a micro-batch has several leaves,
 * a shorter last leaf is its own micro-batch. No sample is dropped or repeated;
 * but drop_last ends an epoch before its last, smaller batch.
 *
 * Repeated augmentation (Hoffer et al. 2020; torchvision's RASampler) has each sample `repeats` times in succession,
 * and ends the epoch after N samples, rounded down to a multiple of 256: a step then takes what RASampler deals to all
 * ranks in it. */
#ifndef DPT_DATA_SAMPLER_H
#define DPT_DATA_SAMPLER_H

#include "trainer/data/dataset.h"
#include "trainer/graph/reduction_tree.h"

enum sampler_order {
	SAMPLER_NATURAL,
	SAMPLER_TABLE,	/* Fisher-Yates shuffle in a table of all samples */
	SAMPLER_GLOBAL, /* permute_at over all samples: as random as the table, without its memory */
	SAMPLER_WINDOW, /* struct window: nearly sequential reads, for network and remote storage */
	SAMPLER_MIX,	/* sampler.h: positions alternate between parts, which have their own epochs */
};

struct sampler {
	int64_t n_samples;    /* N; for endless sets the size of the pool */
	int64_t global_batch; /* G > 0 */
	int64_t micro;	      /* samples of one micro-batch; 0: a whole part */
	int64_t leaf;	      /* > 0: samples per leaf, independent of world; micro is a multiple. 0: no leaves */
	int world;
	uint64_t seed;
	enum sampler_order order; /* natural when endless */
	int64_t window;		  /* SAMPLER_WINDOW: samples that are shuffled together; >= 1 */
	int lanes;		  /* SAMPLER_WINDOW: 1 to WINDOW_LANES; 0: WINDOW_LANES */
	/* SAMPLER_WINDOW: first sample of each piece (shard), ascending from 0; the entry after the last of n_pieces
	 * is N. Borrowed. NULL: pieces of SAMPLER_PIECE samples. */
	const int64_t *piece;
	int64_t n_pieces;
	const struct dataset_part *part; /* SAMPLER_MIX: n_parts parts; borrowed. N is the epoch's size */
	int n_parts;
	int64_t repeats; /* repeated augmentation, not of endless sets or mixes; 0: off */
	bool endless;	 /* one endless epoch: position p is sample p modulo N */
	bool drop_last;	 /* an epoch ends after its last whole batch; a set smaller than a batch is one batch */
};

/* A half-open range of positions of an epoch's order (or of any list). */
struct range {
	int64_t begin, end;
};

int64_t sampler_repeat(const struct sampler *s, int64_t position); /* number of its sample's repetition, from 0 */
int64_t sampler_steps(const struct sampler *s); /* per epoch: ceil(N/G), or floor; INT64_MAX when endless */
struct range sampler_global(const struct sampler *s, int64_t step);	    /* positions of the whole step */
struct range sampler_part(const struct sampler *s, int64_t step, int rank); /* positions of one rank; may be empty */
struct reduction_tree sampler_leaves(const struct sampler *s, int64_t step, int rank); /* all 0 without leaves */
/* Micro-batches of the step, >= 1: equal on every rank. */
int64_t sampler_micros(const struct sampler *s, int64_t step);
struct range sampler_micro(const struct sampler *s, int64_t step, int rank, int64_t micro); /* may be empty */
/* Returns the rank's leaf at which a micro-batch begins, as struct step_page counts them: at least `micro`; beyond
 * the rank's leaves if the micro-batch is empty. Without leaves `micro`. */
int64_t sampler_leaf(const struct sampler *s, int64_t step, int rank, int64_t micro);

/* Returns true if neighbours of the sample at this position of the rank will not be read soon. That holds for orders
 * that shuffle the whole set, and for the last, smaller batch of windows where it reads lanes that the rank's other
 * batches do not. */
bool sampler_is_alone(const struct sampler *s, int rank, int64_t position);

/* Lists every shape of a micro-batch of any rank, without repetition, those that end a step first, so that each can
 * be planned before the first step. Returns their number. */
#define SAMPLER_SHAPES_MAX 16

struct micro_shape {
	int64_t size; /* samples; may be 0 */
	bool last;    /* last of its step */
};

int sampler_shapes(const struct sampler *s, struct micro_shape ret[SAMPLER_SHAPES_MAX]);

/* A shuffled order that reads a set nearly sequentially, in L lanes at once: a pure function of key, N, L and the
 * global batch G, without a table. L is 64, or less for sets of large compressed pages (struct dataset_page_window).
 *
 * Position j of a batch belongs to lane floor(j L / G), so lane l has w consecutive positions of each batch. Ranks
 * take contiguous parts of a batch, so they read different lanes. The lanes divide 0 … N-1 into consecutive ranges,
 * each as long as the lane's positions in an epoch. A lane's samples are permuted within windows: as many batches as
 * have `window` samples over all lanes. */

struct window_opts {
	int64_t n, global; /* >= 1 */
	int64_t window;	   /* samples, >= 1 */
	int lanes;	   /* 0: WINDOW_LANES */
	struct rng_key key;
};

struct window {
	struct window_opts o;
	int64_t batches; /* per window, >= 1 */
};

static inline int64_t window_lane_number(int64_t place, int64_t global, int lanes)
{
	return (int64_t)((__int128)place * (lanes ? lanes : WINDOW_LANES) / global);
}

/* Initialises *w for one epoch, whose key is o->key. */
void window_init(struct window *w, const struct window_opts *o);

/* Returns the sample (0 to n - 1) at a position of the epoch (batch * G + j). skip > 0: the sample `skip` positions
 * further in its lane, cyclically. */
int64_t window_at(const struct window *w, int64_t position, int64_t skip);

int64_t window_lane(const struct window *w, int64_t position); /* number of samples in the position's lane */

#define SAMPLER_PIECE 256

/* The order of one epoch, which counts from 0. Endless and unshuffled samplers need no table. */
struct order {
	int64_t epoch;		/* -1: not built yet */
	uint32_t *index;	/* SAMPLER_TABLE */
	struct permute permute; /* SAMPLER_GLOBAL; SAMPLER_WINDOW: of the pieces */
	struct window window;	/* SAMPLER_WINDOW */
	int64_t *piece_start;	/* … [piece in its order]: its first position in the concatenation */
	int64_t n_pieces;
	struct mix *mix; /* SAMPLER_MIX; immutable */
};

void order_init(struct order *o, const struct sampler *s); /* allocates the order's memory */
/* Builds the order of an epoch: O(N) for a table, O(pieces) for windows, if the epoch changes. Does not allocate. */
void order_make(struct order *o, const struct sampler *s, int64_t epoch);
int64_t order_at(const struct order *o, const struct sampler *s, int64_t position); /* sample index */

/* Returns the sample that replaces the one at a position when it and the next skip - 1 candidates are unreadable:
 * the next in the order; for windows the next in the lane, cyclically. skip 0 is order_at. For skips from 0 to
 * order_others each sample occurs once. */
int64_t order_other(const struct order *o, const struct sampler *s, int64_t position, int64_t skip);
int64_t order_others(const struct order *o, const struct sampler *s, int64_t position);
void order_done(struct order *o);

/* ---- the parts of a mixed set: a pure function of the position and integer weights ----
 * Among the first p positions a part of weight w has p w / W, to within one sample. */

#define MIX_PERIOD_MAX ((uint32_t)1 << 20)
#define MIX_PARTS_MAX 255

/* Parses "0.7,0.3" or "3,1" to integer weights without a common divisor, exact up to 6 decimals if the period allows
 * it. ERR_USAGE names what is wrong. flag: name of the option. */
int mix_parse(uint32_t ret[MIX_PARTS_MAX], int *ret_n, const char *flag, const char *text, struct err *err);

#endif
