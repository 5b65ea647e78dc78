/* sampler.c: the order of samples and their division into batches. */
#include "trainer/data/loader/sampler.h"

#include <stdlib.h>

#include "trainer/data/loader/mix.h"
#include "trainer/graph/rng.h"

static int64_t divide_round_up(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

static int64_t min_position(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

struct range range_part(struct range r, int rank, int world)
{
	int64_t n = r.end - r.begin, each = n / world, extra = n % world;
	int64_t begin = r.begin + rank * each + min_position(rank, extra);

	return (struct range){ begin, begin + each + (rank < extra) };
}

int64_t sampler_steps(const struct sampler *s)
{
	return s->endless ? INT64_MAX : divide_round_up(s->n_samples, s->global_batch);
}

struct range sampler_global(const struct sampler *s, int64_t step)
{
	int64_t begin;

	if (s->endless) { /* only the position modulo N matters; the product may overflow */
		begin = (int64_t)((__int128)step * s->global_batch % s->n_samples);
		return (struct range){ begin, begin + s->global_batch };
	}
	begin = step * s->global_batch;
	return (struct range){ begin, min_position(begin + s->global_batch, s->n_samples) };
}

struct reduction_tree sampler_leaves(const struct sampler *s, int64_t step, int rank)
{
	struct range r = sampler_global(s, step);

	return s->leaf ? reduction_tree_part(divide_round_up(r.end - r.begin, s->leaf), rank, s->world)
		       : (struct reduction_tree){ 0 };
}

struct range sampler_part(const struct sampler *s, int64_t step, int rank)
{
	struct range r = sampler_global(s, step);
	struct reduction_tree l = sampler_leaves(s, step, rank);

	if (!s->leaf)
		return range_part(r, rank, s->world);
	r.begin = min_position(r.begin + l.first * s->leaf, r.end);
	r.end = min_position(r.begin + l.n * s->leaf, r.end);
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

	return divide_round_up(whole - part.begin, s->micro) + (whole < part.end);
}

/* The first rank has the largest part, or as many leaves as the one that has the short one. */
int64_t sampler_micros(const struct sampler *s, int64_t step)
{
	const int64_t all = sampler_leaves(s, step, 0).all;
	const int last = (int)min_position(all, s->world) - 1;
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
		return (struct range){ begin, min_position(begin + s->micro, whole) };
	return (struct range){ begin - s->micro < whole ? whole : part.end, part.end };
}

int64_t sampler_leaf(const struct sampler *s, int64_t step, int rank, int64_t micro)
{
	int64_t leaf = micro;

	if (s->leaf)
		leaf = divide_round_up(sampler_micro(s, step, rank, micro).begin - sampler_part(s, step, rank).begin,
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
	if (position / global != s->n_samples / global)
		return false;
	usual = sampler_part(s, 0, rank);
	lane = window_lane_number(position % global, global);
	return lane < window_lane_number(usual.begin, global) || lane > window_lane_number(usual.end - 1, global);
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

static int64_t count_order_pieces(const struct sampler *s)
{
	return s->piece ? s->n_pieces : divide_round_up(s->n_samples, SAMPLER_PIECE);
}

static int64_t find_piece_begin(const struct sampler *s, int64_t i)
{
	return s->piece ? s->piece[i] : min_position(i * SAMPLER_PIECE, s->n_samples);
}

static enum sampler_order effective_order(const struct sampler *s)
{
	return s->endless ? SAMPLER_NATURAL : s->order;
}

static int init_mix_order(struct order *o, const struct sampler *s, struct err *err)
{
	uint32_t weight[MIX_PARTS_MAX];

	for (int i = 0; i < s->n_parts; i++)
		weight[i] = s->part[i].weight;
	return mix_new(&o->mix, weight, s->n_parts, err);
}

int order_init(struct order *o, const struct sampler *s, struct err *err)
{
	size_t bytes;

	*o = (struct order){ .epoch = -1 };
	if (effective_order(s) == SAMPLER_MIX)
		return init_mix_order(o, s, err);
	if (effective_order(s) == SAMPLER_TABLE) {
		if (s->n_samples > (int64_t)UINT32_MAX)
			return err_set(err, ERR_USAGE, "%lld samples are more than an epoch can shuffle",
				       (long long)s->n_samples);
		bytes = (size_t)s->n_samples * sizeof(*o->index);
		o->index = malloc(bytes);
	} else if (effective_order(s) == SAMPLER_WINDOW) {
		o->n_pieces = count_order_pieces(s);
		bytes = ((size_t)o->n_pieces + 1) * sizeof(*o->piece_start);
		o->piece_start = malloc(bytes);
	} else {
		return 0;
	}
	return o->index || o->piece_start
		       ? 0
		       : err_set(err, ERR_NOMEM, "no memory for the order of %lld samples", (long long)s->n_samples);
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
	window_init(&o->window, &(struct window_opts){ s->n_samples, s->global_batch, s->window, key });
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
	int part = mix_at(o->mix, o->epoch * s->n_samples + position, &before);
	const struct dataset_part *p = &s->part[part];
	struct rng_key key = { s->seed, rng_stream("shuffle mix") ^ (uint64_t)(before / p->n) };
	struct permute permute;

	key.stream = rng_u64(key, (uint64_t)part);
	permute_init(&permute, key, (uint64_t)p->n);
	return p->first + (int64_t)permute_at(&permute, (uint64_t)(before % p->n));
}

int64_t order_other(const struct order *o, const struct sampler *s, int64_t position, int64_t skip)
{
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
	mix_free(o->mix);
	*o = (struct order){ .epoch = -1 };
}
