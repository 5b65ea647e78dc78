/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.c: the orders of samples (mixes of parts, windows, permutations) and their division into batches. */
#include "trainer/data/loader/sampler.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/base/round.h"
#include "tracker/mem/mem.h"

/* ---- mixes of parts ----
 * Lays out one period of positions in which each part occurs as often as its weight. With total W, unit c of
 * a part of weight w must be at a position in [floor(c W / w), ceil((c + 1) W / w)). Earliest deadline first
 * satisfies all of these (proportionate fairness: Baruah, Cohen, Plaxton and Varvel 1996; Tijdeman's chairman
 * assignment 1980). */

#define MIX_BLOCK 256 /* positions between two stored counts */
#define MIX_DECIMALS 6

struct mix {
	int n;
	uint32_t period;
	uint32_t *weight;
	uint8_t *part;	 /* [position in the period] */
	uint32_t *count; /* [position / MIX_BLOCK][part]: earlier positions of the part */
};

/* The next unit of a part: its number, release position and deadline. */
struct mix_unit {
	uint64_t done, from, before;
};

static struct mix_unit make_mix_unit(const struct mix *m, int part, uint64_t done)
{
	uint64_t w = m->weight[part];

	return (struct mix_unit){ done, done * m->period / w, ((done + 1) * m->period + w - 1) / w };
}

static int find_most_urgent(const struct mix *m, const struct mix_unit *unit, uint32_t place)
{
	int best = -1;

	for (int i = 0; i < m->n; i++)
		if (unit[i].from <= place && (best < 0 || unit[i].before < unit[best].before))
			best = i;
	return best;
}

static void lay_out_period(struct mix *m, struct mix_unit *unit)
{
	for (int i = 0; i < m->n; i++)
		unit[i] = make_mix_unit(m, i, 0);
	for (uint32_t place = 0; place < m->period; place++) {
		int part = find_most_urgent(m, unit, place);

		for (int i = 0; i < m->n && place % MIX_BLOCK == 0; i++)
			m->count[place / MIX_BLOCK * (uint32_t)m->n + (uint32_t)i] = (uint32_t)unit[i].done;
		m->part[place] = (uint8_t)part;
		unit[part] = make_mix_unit(m, part, unit[part].done + 1);
	}
}

static void free_mix(struct mix *m)
{
	if (!m)
		return;
	free(m->weight);
	free(m->part);
	free(m->count);
	free(m);
}

/* n weights > 0 with a sum of at most MIX_PERIOD_MAX. Memory and time are proportional to the sum. */
static struct mix *make_mix(const uint32_t *weight, int n)
{
	struct mix *m = mem_zalloc(sizeof(*m));
	struct mix_unit *unit = mem_array((size_t)n, sizeof(*unit));

	for (int i = 0; i < n; i++)
		m->period += weight[i];
	m->n = n;
	m->weight = mem_dup(weight, (size_t)n * sizeof(*weight));
	m->part = mem_alloc(m->period);
	m->count = mem_array((m->period / MIX_BLOCK + 1) * (size_t)n, sizeof(*m->count));
	lay_out_period(m, unit);
	free(unit);
	return m;
}

/* Returns the part of a position (from 0). *ret_before: earlier positions of that part. Constant time. */
static int find_mix_part(const struct mix *m, int64_t place, int64_t *ret_before)
{
	uint32_t at = (uint32_t)(place % m->period), block = at / MIX_BLOCK;
	int part = m->part[at];
	int64_t before = place / m->period * m->weight[part] + m->count[block * (uint32_t)m->n + (uint32_t)part];

	for (uint32_t i = block * MIX_BLOCK; i < at; i++)
		before += m->part[i] == part;
	*ret_before = before;
	return part;
}

/* Parses one weight in millionths and advances *text past it. 0: invalid. */
static uint64_t parse_mix_weight(const char **text)
{
	const char *at = *text;
	uint64_t v = 0;
	int decimals = -1;

	for (; (*at >= '0' && *at <= '9') || (*at == '.' && decimals < 0); at++) {
		if (*at == '.') {
			decimals = 0;
			continue;
		}
		if (v > UINT64_C(1000000000000) || decimals == MIX_DECIMALS)
			return 0;
		v = v * 10 + (uint64_t)(*at - '0');
		decimals += decimals >= 0;
	}
	for (decimals = decimals < 0 ? 0 : decimals; decimals < MIX_DECIMALS; decimals++)
		v *= 10;
	*text = at;
	return v;
}

static uint64_t find_common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Divides the weights by their common divisor. If their sum still exceeds a period, scales them down, rounded, at
 * least 1. */
static void reduce_weights(uint32_t *ret, const uint64_t *v, int n)
{
	uint64_t common = 0, sum = 0;

	for (int i = 0; i < n; i++)
		common = find_common_divisor(v[i], common);
	for (int i = 0; i < n; i++)
		sum += v[i] / common;
	for (int i = 0; i < n; i++) {
		uint64_t w = v[i] / common;

		if (sum > MIX_PERIOD_MAX)
			w = (uint64_t)((double)w / (double)sum * (MIX_PERIOD_MAX - MIX_PARTS_MAX) + 0.5);
		ret[i] = w ? (uint32_t)w : 1;
	}
}

int mix_parse(uint32_t ret[MIX_PARTS_MAX], int *ret_n, const char *flag, const char *text, struct err *err)
{
	uint64_t v[MIX_PARTS_MAX];
	const char *at = text;
	int n = 0;

	do {
		if (n == MIX_PARTS_MAX)
			return err_set(err, ERR_USAGE, "%s: more than %d weights", flag, MIX_PARTS_MAX);
		v[n] = parse_mix_weight(&at);
		if (!v[n++] || (*at && *at != ','))
			return err_set(err, ERR_USAGE,
				       "%s %.200s: weight %d: expected a number above 0 with at most %d decimals", flag,
				       text, n, MIX_DECIMALS);
	} while (*at++);
	reduce_weights(ret, v, n);
	*ret_n = n;
	return 0;
}

/* ---- lanes and windows ---- */

struct lane_span {
	int64_t number, first; /* first position in a batch */
	int64_t width;	       /* positions in a whole batch */
	int64_t begin, length; /* range in 0 … n-1 */
};

void window_init(struct window *w, const struct window_opts *o)
{
	*w = (struct window){ .o = *o, .batches = o->window / o->global };
	if (w->batches < 1)
		w->batches = 1;
	if (!w->o.lanes)
		w->o.lanes = WINDOW_LANES;
}

/* Positions of a batch that belong to lower lanes. */
static int64_t count_places_before(const struct window *w, int64_t lane)
{
	return (int64_t)(((__int128)lane * w->o.global + w->o.lanes - 1) / w->o.lanes);
}

static struct lane_span locate_lane(const struct window *w, int64_t place)
{
	int64_t number = window_lane_number(place, w->o.global, w->o.lanes);
	int64_t first = count_places_before(w, number), next = count_places_before(w, number + 1);
	int64_t whole = w->o.n / w->o.global, rest = w->o.n % w->o.global; /* batches */

	return (struct lane_span){ .number = number,
				   .first = first,
				   .width = next - first,
				   .begin = whole * first + min_int64(rest, first),
				   .length = whole * (next - first) + min_int64(rest, next) - min_int64(rest, first) };
}

/* Permutes within a window: returns the sample of the lane at its k-th position. */
static int64_t permute_in_window(const struct window *w, const struct lane_span *l, int64_t k)
{
	int64_t size = w->batches * l->width, number = k / size, begin = number * size;
	struct rng_key key = { w->o.key.seed, w->o.key.stream };
	struct permute p;

	key.seed = rng_u64(key, (uint64_t)number * WINDOW_LANES + (uint64_t)l->number);
	permute_init(&p, key, (uint64_t)min_int64(size, l->length - begin));
	return begin + (int64_t)permute_at(&p, (uint64_t)(k - begin));
}

int64_t window_at(const struct window *w, int64_t position, int64_t skip)
{
	int64_t place = position % w->o.global;
	struct lane_span l = locate_lane(w, place);
	int64_t k = position / w->o.global * l.width + place - l.first;

	return l.begin + permute_in_window(w, &l, (k + skip) % l.length);
}

int64_t window_lane(const struct window *w, int64_t position)
{
	return locate_lane(w, position % w->o.global).length;
}

#define REPEATED_MULTIPLE 256

/* Returns part `rank` of [begin, end), divided into `world` contiguous parts whose sizes differ by at most one. */
static struct range divide_range(struct range r, int rank, int world)
{
	const struct reduction_tree l = reduction_tree_part(r.end - r.begin, rank, world);

	return (struct range){ r.begin + l.first, r.begin + l.first + l.n };
}

/* Positions of an epoch; N without repeats. Smaller sets than RASampler's 256 samples are used whole. */
static int64_t count_positions(const struct sampler *s)
{
	return s->repeats && s->n_samples >= REPEATED_MULTIPLE ? s->n_samples - s->n_samples % REPEATED_MULTIPLE
							       : s->n_samples;
}

int64_t sampler_repeat(const struct sampler *s, int64_t position)
{
	return s->repeats ? position % s->repeats : 0;
}

int64_t sampler_steps(const struct sampler *s)
{
	const int64_t n = count_positions(s);

	if (s->endless)
		return INT64_MAX;
	return s->drop_last && n >= s->global_batch ? n / s->global_batch : divide_up(n, s->global_batch);
}

struct range sampler_global(const struct sampler *s, int64_t step)
{
	int64_t begin;

	if (s->endless) { /* only the position modulo N matters; the product may overflow */
		begin = (int64_t)((__int128)step * s->global_batch % s->n_samples);
		return (struct range){ begin, begin + s->global_batch };
	}
	begin = step * s->global_batch;
	return (struct range){ begin, min_int64(begin + s->global_batch, count_positions(s)) };
}

struct reduction_tree sampler_leaves(const struct sampler *s, int64_t step, int rank)
{
	struct range r = sampler_global(s, step);

	return s->leaf ? reduction_tree_part(divide_up(r.end - r.begin, s->leaf), rank, s->world)
		       : (struct reduction_tree){ 0 };
}

struct range sampler_part(const struct sampler *s, int64_t step, int rank)
{
	struct range r = sampler_global(s, step);
	struct reduction_tree l = sampler_leaves(s, step, rank);

	if (!s->leaf)
		return divide_range(r, rank, s->world);
	r.begin = min_int64(r.begin + l.first * s->leaf, r.end);
	r.end = min_int64(r.begin + l.n * s->leaf, r.end);
	return r;
}

/* Start of the short leaf after the whole micro-batches; the part's end without one. */
static int64_t find_short_leaf(const struct sampler *s, struct range part)
{
	return s->leaf && s->leaf < s->micro ? part.end - (part.end - part.begin) % s->leaf : part.end;
}

static int64_t count_rank_micros(const struct sampler *s, int64_t step, int rank)
{
	const struct range part = sampler_part(s, step, rank);
	const int64_t whole = find_short_leaf(s, part);

	return divide_up(whole - part.begin, s->micro) + (whole < part.end);
}

/* The first rank has the largest part, or as many leaves as the one that has the short one. */
int64_t sampler_micros(const struct sampler *s, int64_t step)
{
	const int64_t all = sampler_leaves(s, step, 0).all;
	const int last = (int)min_int64(all, s->world) - 1;
	int64_t first, with_short;

	if (!s->micro)
		return 1;
	first = count_rank_micros(s, step, 0);
	with_short = last > 0 ? count_rank_micros(s, step, last) : 0;
	return first > with_short ? first : with_short;
}

struct range sampler_micro(const struct sampler *s, int64_t step, int rank, int64_t micro)
{
	const struct range part = sampler_part(s, step, rank);
	const int64_t whole = find_short_leaf(s, part), begin = part.begin + micro * s->micro;

	if (!s->micro)
		return part;
	if (begin < whole)
		return (struct range){ begin, min_int64(begin + s->micro, whole) };
	return (struct range){ begin - s->micro < whole ? whole : part.end, part.end };
}

int64_t sampler_leaf(const struct sampler *s, int64_t step, int rank, int64_t micro)
{
	int64_t leaf = micro;

	if (s->leaf)
		leaf = divide_up(sampler_micro(s, step, rank, micro).begin - sampler_part(s, step, rank).begin,
				       s->leaf);
	return leaf > micro ? leaf : micro;
}

bool sampler_is_alone(const struct sampler *s, int rank, int64_t position)
{
	const int64_t global = s->global_batch;
	struct range usual;
	int64_t lane;

	if (s->order != SAMPLER_WINDOW)
		return s->order == SAMPLER_TABLE || s->order == SAMPLER_GLOBAL;
	if (position / global != count_positions(s) / global)
		return false;
	usual = sampler_part(s, 0, rank);
	lane = window_lane_number(position % global, global, s->lanes);
	return lane < window_lane_number(usual.begin, global, s->lanes) ||
	       lane > window_lane_number(usual.end - 1, global, s->lanes);
}

static int add_micro_shape(struct micro_shape *shapes, int n, struct micro_shape shape)
{
	for (int i = 0; i < n; i++)
		if (shapes[i].size == shape.size && shapes[i].last == shape.last)
			return n;
	shapes[n] = shape;
	return n + 1;
}

/* Adds the shapes of a step. The first micro-batch of a part is whole; the rest, a short leaf and an empty one are
 * among the last three. */
static int add_step_shapes(const struct sampler *s, int64_t step, bool last, struct micro_shape *shapes, int n)
{
	int64_t micros = sampler_micros(s, step), first[] = { 0, micros - 3, micros - 2 };

	for (int rank = 0; rank < s->world; rank++)
		for (int k = 0; k < (last ? 1 : 3); k++) {
			int64_t micro = last ? micros - 1 : first[k];
			struct range r = sampler_micro(s, step, rank, micro);

			if (micro >= 0 && (last || micro < micros - 1))
				n = add_micro_shape(shapes, n, (struct micro_shape){ r.end - r.begin, last });
		}
	return n;
}

int sampler_shapes(const struct sampler *s, struct micro_shape ret[SAMPLER_SHAPES_MAX])
{
	int64_t steps = sampler_steps(s);
	int n = 0;

	for (int last = 1; last >= 0; last--) {
		n = add_step_shapes(s, 0, last, ret, n);
		if (!s->endless && steps > 1)
			n = add_step_shapes(s, steps - 1, last, ret, n);
	}
	return n;
}

static int64_t find_piece_begin(const struct sampler *s, int64_t i)
{
	return s->piece ? s->piece[i] : min_int64(i * SAMPLER_PIECE, s->n_samples);
}

static enum sampler_order effective_order(const struct sampler *s)
{
	return s->endless ? SAMPLER_NATURAL : s->order;
}

void order_init(struct order *o, const struct sampler *s)
{
	const enum sampler_order order = effective_order(s);
	uint32_t weight[MIX_PARTS_MAX];

	*o = (struct order){ .epoch = -1 };
	if (order == SAMPLER_MIX) {
		for (int i = 0; i < s->n_parts; i++)
			weight[i] = s->part[i].weight;
		o->mix = make_mix(weight, s->n_parts);
	} else if (order == SAMPLER_TABLE) {
		o->index = mem_alloc((size_t)s->n_samples * sizeof(*o->index)); /* at most DATASET_SAMPLES_MAX */
	} else if (order == SAMPLER_WINDOW) {
		o->n_pieces = s->piece ? s->n_pieces : divide_up(s->n_samples, SAMPLER_PIECE);
		o->piece_start = mem_alloc(((size_t)o->n_pieces + 1) * sizeof(*o->piece_start));
	}
}

static void shuffle_table(struct order *o, const struct sampler *s)
{
	struct rng_key key = { s->seed, rng_stream("shuffle") ^ (uint64_t)o->epoch };

	for (int64_t i = 0; i < s->n_samples; i++)
		o->index[i] = (uint32_t)i;
	for (int64_t i = s->n_samples - 1; i > 0; i--) {
		int64_t j = (int64_t)rng_below(key, (uint64_t)i, (uint64_t)i + 1);
		uint32_t moved = o->index[i];

		o->index[i] = o->index[j];
		o->index[j] = moved;
	}
}

/* Concatenates the pieces in permuted order. */
static void permute_pieces(struct order *o, const struct sampler *s)
{
	struct rng_key key = { s->seed, rng_stream("shuffle pieces") ^ (uint64_t)o->epoch };

	permute_init(&o->permute, key, (uint64_t)o->n_pieces);
	o->piece_start[0] = 0;
	for (int64_t i = 0; i < o->n_pieces; i++) {
		int64_t piece = (int64_t)permute_at(&o->permute, (uint64_t)i);

		o->piece_start[i + 1] = o->piece_start[i] + find_piece_begin(s, piece + 1) - find_piece_begin(s, piece);
	}
	key.stream = rng_stream("shuffle window") ^ (uint64_t)o->epoch;
	window_init(&o->window,
		    &(struct window_opts){ s->n_samples, s->global_batch, s->window, s->lanes, key });
}

void order_make(struct order *o, const struct sampler *s, int64_t epoch)
{
	struct rng_key key = { s->seed, rng_stream("shuffle global") ^ (uint64_t)epoch };

	if (o->epoch == epoch)
		return;
	o->epoch = epoch;
	switch (effective_order(s)) {
	case SAMPLER_TABLE:
		shuffle_table(o, s);
		break;
	case SAMPLER_GLOBAL:
		permute_init(&o->permute, key, (uint64_t)s->n_samples);
		break;
	case SAMPLER_WINDOW:
		permute_pieces(o, s);
		break;
	case SAMPLER_MIX:
	case SAMPLER_NATURAL:
		break;
	}
}

/* Returns the sample at a position of the concatenated pieces. */
static int64_t sample_at_place(const struct order *o, const struct sampler *s, int64_t place)
{
	int64_t low = 0, high = o->n_pieces - 1;

	while (low < high) {
		int64_t middle = (low + high + 1) / 2;

		if (o->piece_start[middle] <= place)
			low = middle;
		else
			high = middle - 1;
	}
	return find_piece_begin(s, (int64_t)permute_at(&o->permute, (uint64_t)low)) + place - o->piece_start[low];
}

/* Maps positions across all epochs, so that parts continue where they were. Each part permutes its samples by its
 * own epoch. */
static int64_t mixed_sample_at(const struct order *o, const struct sampler *s, int64_t position)
{
	int64_t before;
	int part = find_mix_part(o->mix, o->epoch * s->n_samples + position, &before);
	const struct dataset_part *p = &s->part[part];
	struct rng_key key = { s->seed, rng_stream("shuffle mix") ^ (uint64_t)(before / p->n) };
	struct permute permute;

	key.stream = rng_u64(key, (uint64_t)part);
	permute_init(&permute, key, (uint64_t)p->n);
	return p->first + (int64_t)permute_at(&permute, (uint64_t)(before % p->n));
}

int64_t order_other(const struct order *o, const struct sampler *s, int64_t position, int64_t skip)
{
	position = s->repeats ? position / s->repeats : position;
	position = effective_order(s) == SAMPLER_WINDOW ? position : (position + skip) % s->n_samples;
	switch (effective_order(s)) {
	case SAMPLER_TABLE:
		return (int64_t)o->index[position];
	case SAMPLER_GLOBAL:
		return (int64_t)permute_at(&o->permute, (uint64_t)position);
	case SAMPLER_WINDOW:
		return sample_at_place(o, s, window_at(&o->window, position, skip));
	case SAMPLER_MIX:
		return mixed_sample_at(o, s, position);
	case SAMPLER_NATURAL:
		break;
	}
	return position;
}

int64_t order_others(const struct order *o, const struct sampler *s, int64_t position)
{
	position = s->repeats ? position / s->repeats : position;
	return (effective_order(s) == SAMPLER_WINDOW ? window_lane(&o->window, position) : s->n_samples) - 1;
}

int64_t order_at(const struct order *o, const struct sampler *s, int64_t position)
{
	return order_other(o, s, position, 0);
}

void order_done(struct order *o)
{
	free(o->index);
	free(o->piece_start);
	free_mix(o->mix);
	*o = (struct order){ .epoch = -1 };
}
