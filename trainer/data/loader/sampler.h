/* sampler.h: which samples a rank takes at a step: pure functions of (seed, epoch, step, rank, world), so that a run
 * can be continued anywhere, with any number of ranks.
 *
 * Step k (from 0) of epoch e takes positions [k*G, min((k+1)*G, N)) of the epoch's order, G being the global batch. The
 * order is one of enum sampler_order, keyed by (seed, e), or 0, 1, 2, … without shuffling (evaluation). A global batch
 * is split into contiguous parts over the ranks, sizes differing by at most one, the larger ones first; a part is split
 * into micro-batches of `micro` samples, the last one shorter. With leaves (graph/leaves.h) the global batch itself is
 * cut into leaves of `leaf` samples, parts are whole ones, and where several make a micro-batch, a shorter last one is
 * a micro-batch of its own. Nothing is dropped or repeated. */
#ifndef DPT_DATA_SAMPLER_H
#define DPT_DATA_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "tracker/base/err.h"
#include "trainer/data/dataset.h"
#include "trainer/data/loader/window.h"
#include "trainer/data/permute.h"
#include "trainer/graph/reduction_tree.h"

enum sampler_order {
	SAMPLER_NATURAL,
	SAMPLER_TABLE,	/* a Fisher-Yates shuffle in a table of all samples */
	SAMPLER_GLOBAL, /* permute.h over all samples: the same freedom without the table */
	SAMPLER_WINDOW, /* window.h: nearly sequential reading, for sets that lie far away */
	SAMPLER_MIX,	/* mix.h: places are dealt to the parts of a set, each of which has epochs of its own */
};

struct sampler {
	int64_t n_samples;    /* N; for endless sets the size of the pool */
	int64_t global_batch; /* G > 0 */
	int64_t micro;        /* samples of one micro-batch; 0: a whole part */
	int64_t leaf;	      /* > 0: samples of a leaf, the same for every world; micro is a multiple; 0: no leaves */
	int world;
	uint64_t seed;
	enum sampler_order order; /* natural when endless */
	int64_t window;	      /* of SAMPLER_WINDOW: samples that are mixed at a time; >= 1 */
	/* Of SAMPLER_WINDOW: where the set's pieces (shards) begin, ascending from 0, with N behind the last of
	 * n_pieces; borrowed. NULL: pieces of SAMPLER_PIECE samples. */
	const int64_t *piece;
	int64_t n_pieces;
	const struct dataset_part *part; /* of SAMPLER_MIX: n_parts of them; borrowed. N is what is called an epoch */
	int n_parts;
	bool endless; /* one epoch without an end: position p stands for sample p modulo N */
};

/* A half-open range of positions of an epoch's order (or of any list). */
struct range {
	int64_t begin, end;
};

int64_t sampler_steps(const struct sampler *s); /* per epoch: ceil(N/G); INT64_MAX when endless */
struct range sampler_global(const struct sampler *s, int64_t step);            /* positions of the whole step */
struct range sampler_part(const struct sampler *s, int64_t step, int rank);    /* positions of one rank; may be empty */
struct reduction_tree sampler_leaves(const struct sampler *s, int64_t step, int rank); /* with leaves; else all 0 */
/* micro-batches of the step: the same on every rank, >= 1 */
int64_t sampler_micros(const struct sampler *s, int64_t step);
struct range sampler_micro(const struct sampler *s, int64_t step, int rank, int64_t micro); /* may be empty */
/* The rank's leaf that a micro-batch begins with, as struct step_page counts them: at least `micro`, and no leaf of the
 * rank where the micro-batch is empty; without leaves `micro`. */
int64_t sampler_leaf(const struct sampler *s, int64_t step, int rank, int64_t micro);

/* Whether what lies around the sample at this position of the rank's is not read soon: where the order mixes the whole
 * set, and of windows where the last batch, which is smaller, takes from lanes that the rank's other batches do not. */
bool sampler_is_alone(const struct sampler *s, int rank, int64_t position);

/* Every shape that a micro-batch of any rank can have with this sampler, without repetition, the last ones of a step
 * first: for planning each before the first step. Returns how many. */
#define SAMPLER_SHAPES_MAX 16

struct micro_shape {
	int64_t size; /* samples; may be 0 */
	bool last;    /* of its step */
};

int sampler_shapes(const struct sampler *s, struct micro_shape ret[SAMPLER_SHAPES_MAX]);

/* Part `rank` of [begin, end) in `world` contiguous parts whose sizes differ by at most one. */
struct range range_part(struct range r, int rank, int world);

#define SAMPLER_PIECE 256

/* The order of one epoch. epoch counts from 0. Endless or unshuffled samplers need no table. */
struct order {
	int64_t epoch;		 /* -1: none made yet */
	uint32_t *index;	 /* SAMPLER_TABLE */
	struct permute permute;	 /* SAMPLER_GLOBAL; SAMPLER_WINDOW: of the pieces */
	struct window window;	 /* SAMPLER_WINDOW */
	int64_t *piece_start;	 /* … [piece in its order]: where it begins when all are laid end to end */
	int64_t n_pieces;
	struct mix *mix;	 /* SAMPLER_MIX */
};

int order_init(struct order *o, const struct sampler *s, struct err *err); /* allocates what the order needs */
/* O(N) for a table, O(pieces) for windows, when the epoch changes; no allocation */
void order_make(struct order *o, const struct sampler *s, int64_t epoch);
int64_t order_at(const struct order *o, const struct sampler *s, int64_t position); /* sample index */

/* The sample that takes the place of the one at a position when that and the skip - 1 next ones cannot be read: the
 * next of the order, of windows the next of the same lane, around its end. skip 0 is order_at. Each sample comes once
 * for skips from 0 to order_others. */
int64_t order_other(const struct order *o, const struct sampler *s, int64_t position, int64_t skip);
int64_t order_others(const struct order *o, const struct sampler *s, int64_t position);
void order_done(struct order *o);

#endif
