/* SPDX-License-Identifier: Apache-2.0 */
/* lmhead_cpu.c: the classifier with its loss, by groups of rows and tiles of the vocabulary. While a tile's logits are
 * in the cache they are replaced by exp(logit - maximum of the row in this tile), stored in the operands' type; only
 * these and the maxima are kept. After a row's last tile its sum is known, and the exponentials are scaled to
 * gradients. Each group reads w twice, and reads and writes dw once. Rows whose target is ignored are left out, unless
 * their logits are kept: the rows that count are copied into groups, and the last group is filled with zeros. */
#ifndef CPU_PASS
#include <math.h>

#include "tracker/base/round.h"
#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/cpu_matmul.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/lmhead/lmhead.h"
#include "trainer/ops/xent/xent.h"

#define TILE_BYTES ((int64_t)2 << 20)	/* approximate size of a tile of logits */
#define GRADS_BYTES ((int64_t)54 << 20) /* approximate size of a group's gradients */
#define WORDS_MAX 4096			/* per tile; the library packs this part of w */
#define ROWS_MIN 32
#define ROWS_MAX 1024
#define ROWS_STEP 16
#define LINE 32 /* elements; rows of logits and gradients start at cache lines */
#define FOLD 64 /* vectors summed in f32 before they are added to the row's f64 sum */

/* Matrix products for a group; only the last group may have fewer rows. */
struct lmhead_products {
	struct cpu_matmul *logits, *logits_last; /* for a tile, and for the last tile */
	struct cpu_matmul *dx, *dw, *dw_more;	 /* dw_more adds to dw */
};

/* State of a row after some tiles. */
struct lmhead_row {
	double sum;	/* sum of e^(logit - max) */
	float max, own; /* own: logit of the target */
	int32_t best;	/* word of max; only if it is wanted */
};

struct lmhead_state {
	cpu_part_fn *tile_loop, *grads_loop;
	struct lmhead_products whole, tail;
	int64_t rows, group, c, v, step; /* step: row stride of grads */
	int64_t words, tile_step, tiles; /* words per tile; row stride of its logits; number of tiles */
	int parts;
	float cap; /* of logits; 0: none */
	bool bf16, has_dx, has_dw;
	size_t tops_at, tile_at, grads_at, index_at, copied_at, scratch_at; /* offsets in the workspace */
	/* set per run */
	const int32_t *targets;
	const int32_t *index; /* the rows that count; NULL: all rows are computed */
	int64_t computed;     /* number of rows */
	const void *x;	      /* rows of the group */
	void *copied;	      /* [group][c]: those rows, later their dx */
	float *kept;
	double scale, *losses, *result;
	int32_t *best;
	bool wants_grads;
	int64_t first, n; /* row range of the group */
	int64_t tile;
	struct lmhead_row *row; /* [n] */
	float *tops;		/* [n][tiles]: maximum of a row in each tile */
	float *logits;		/* logits of the tile: [n][tile_step] */
	void *grads;		/* in the operands' type: [n][step] */
};

static inline size_t count_item_bytes(const struct lmhead_state *s)
{
	return s->bf16 ? sizeof(uint16_t) : sizeof(float);
}

/* The words of a tile; the last tile may have fewer. */
static inline int64_t count_tile_words(const struct lmhead_state *s, int64_t tile)
{
	int64_t left = s->v - tile * s->words;

	return left < s->words ? left : s->words;
}

#define CPU_BODY "trainer/ops/lmhead/lmhead_cpu.c"
#include "trainer/backends/cpu/each.h"

static void raise_scratch_bytes(size_t *most, const struct cpu_matmul *m)
{
	if (m && cpu_matmul_workspace_bytes(m) > *most)
		*most = cpu_matmul_workspace_bytes(m);
}

static int plan_logits_product(struct lmhead_products *ret, const struct kernel_env *env, const struct lmhead_state *s,
			       int64_t rows, struct err *err)
{
	struct dnn_matmul_spec spec = {
		.m = rows, .n = s->words, .k = s->c, .bf16 = s->bf16, .b_turned = true, .out_step = s->tile_step
	};
	int rc = cpu_matmul_get(&ret->logits, env, &spec, err);

	spec.n = count_tile_words(s, s->tiles - 1);
	return rc ? rc : cpu_matmul_get(&ret->logits_last, env, &spec, err);
}

static int plan_dx_product(struct lmhead_products *ret, const struct kernel_env *env, const struct lmhead_state *s,
			   int64_t rows, struct err *err)
{
	const struct dnn_matmul_spec spec = {
		.m = rows, .n = s->c, .k = s->v, .bf16 = s->bf16, .out_bf16 = s->bf16, .a_step = s->step
	};

	return cpu_matmul_get(&ret->dx, env, &spec, err);
}

static int plan_dw_product(struct lmhead_products *ret, const struct kernel_env *env, const struct lmhead_state *s,
			   int64_t rows, struct err *err)
{
	struct dnn_matmul_spec spec = {
		.m = s->v, .n = s->c, .k = rows, .bf16 = s->bf16, .a_turned = true, .a_step = s->step
	};
	int rc = cpu_matmul_get(&ret->dw, env, &spec, err);

	spec.add = true;
	return rc ? rc : cpu_matmul_get(&ret->dw_more, env, &spec, err);
}

/* Plans the products of a group with this number of rows; none for 0 rows. */
static int plan_lmhead_products(struct lmhead_products *ret, const struct kernel_env *env, const struct lmhead_state *s,
				int64_t rows, struct err *err)
{
	int rc = 0;

	if (rows == 0)
		return 0;
	rc = plan_logits_product(ret, env, s, rows, err);
	if (!rc && s->has_dx)
		rc = plan_dx_product(ret, env, s, rows, err);
	if (!rc && s->has_dw)
		rc = plan_dw_product(ret, env, s, rows, err);
	return rc;
}

/* Divides n into as few equal pieces as `most` per piece allows; returns the size of a piece. */
static int64_t split_evenly(int64_t n, int64_t most)
{
	int64_t pieces = (n + most - 1) / most;

	return (n + pieces - 1) / pieces;
}

static int64_t clamp_between(int64_t n, int64_t least, int64_t most)
{
	return n < least ? least : n > most ? most : n;
}

/* Chooses the sizes of groups and tiles: equal, and as few as the limits in bytes allow. A small last group would cost
 * a pass over w and dw for little work. */
static void choose_tile_sizes(struct lmhead_state *s, bool grads)
{
	int64_t row_bytes = s->step * (int64_t)count_item_bytes(s);
	int64_t most = grads ? clamp_between(GRADS_BYTES / row_bytes, ROWS_MIN, ROWS_MAX) : ROWS_MAX;

	s->group = s->rows;
	if (s->rows > most)
		s->group = round_up(split_evenly(s->rows, most), ROWS_STEP);
	most = clamp_between(TILE_BYTES / (int64_t)sizeof(float) / (s->group > 0 ? s->group : 1), 1, WORDS_MAX);
	s->words = s->v;
	if (s->v > most)
		s->words = round_up(split_evenly(s->v, most), LINE);
	s->tiles = (s->v + s->words - 1) / s->words;
	s->tile_step = round_up(s->words, LINE);
}

static size_t round_up_line(size_t bytes)
{
	return round_up_bytes(bytes, 64);
}

static size_t count_scratch_bytes(const struct lmhead_state *s)
{
	const struct lmhead_products *p[] = { &s->whole, &s->tail };
	size_t most = 0;

	for (int i = 0; i < 2; i++) {
		raise_scratch_bytes(&most, p[i]->logits);
		raise_scratch_bytes(&most, p[i]->logits_last);
		raise_scratch_bytes(&most, p[i]->dx);
		raise_scratch_bytes(&most, p[i]->dw);
		raise_scratch_bytes(&most, p[i]->dw_more);
	}
	return most;
}

static void lay_out_workspace(struct lmhead_state *s, struct node *n, bool grads)
{
	s->tops_at = round_up_line((size_t)s->group * sizeof(struct lmhead_row));
	s->tile_at = round_up_line(s->tops_at + (size_t)(s->group * s->tiles) * sizeof(float));
	s->grads_at = s->tile_at + (size_t)(s->group * s->tile_step) * sizeof(float);
	s->index_at = s->grads_at + (grads ? (size_t)(s->group * s->step) * count_item_bytes(s) : 0);
	s->copied_at = round_up_line(s->index_at + 2 * (size_t)(s->rows + s->group) * sizeof(int32_t));
	s->scratch_at = round_up_line(s->copied_at + (size_t)(s->group * s->c) * count_item_bytes(s));
	n->workspace_bytes = s->scratch_at + count_scratch_bytes(s);
}

/* Chooses groups and tiles, and plans the products of full groups and of the last group. */
static int prepare_lmhead_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	bool bf16, grads = n->out[LMHEAD_DX] || n->out[LMHEAD_DW];
	struct lmhead_state *s;
	int rc = cpu_one_type(n, (struct cpu_operands){ 2, 0 }, &bf16, err);

	if (rc)
		return rc;
	s = mem_zalloc(sizeof(*s));
	s->tile_loop = CPU_PICK(env, lmhead_tile_loop);
	s->grads_loop = CPU_PICK(env, lmhead_grads_loop);
	s->bf16 = bf16;
	s->has_dx = n->out[LMHEAD_DX];
	s->has_dw = n->out[LMHEAD_DW];
	s->rows = n->in[0]->shape.dim[0];
	s->c = n->in[0]->shape.dim[1];
	s->v = n->in[1]->shape.dim[0];
	s->cap = (float)lmhead_cap(n);
	s->step = round_up(s->v, LINE);
	choose_tile_sizes(s, grads);
	s->parts = cpu_parts(env, s->group * s->words);
	rc = plan_lmhead_products(&s->whole, env, s, s->group, err);
	if (!rc && s->group > 0)
		rc = plan_lmhead_products(&s->tail, env, s, s->rows % s->group, err);
	if (rc) {
		cpu_state_release(s);
		return rc;
	}
	lay_out_workspace(s, n, grads);
	*ret_state = s;
	return 0;
}

static const char *name_lmhead_impl(const void *state)
{
	const struct lmhead_state *s = state;

	return s->whole.logits ? cpu_matmul_impl(s->whole.logits) : "none";
}

static const struct lmhead_products *pick_group_products(const struct lmhead_state *s)
{
	return s->n == s->group ? &s->whole : &s->tail;
}

static const void *find_matrix_row(const struct lmhead_state *s, const void *matrix, int64_t row)
{
	return (const char *)matrix + (size_t)(row * s->c) * count_item_bytes(s);
}

/* Copies the rows of the group that count, and adds rows of zeros. */
static void copy_group_rows(const struct lmhead_state *s, const void *x)
{
	const size_t bytes = (size_t)s->c * count_item_bytes(s);

	for (int64_t i = 0; i < s->n; i++) {
		char *to = (char *)s->copied + (size_t)i * bytes;

		if (s->first + i < s->computed)
			memcpy(to, find_matrix_row(s, x, s->index[s->first + i]), bytes);
		else
			memset(to, 0, bytes);
	}
}

static void run_lmhead_tile(struct lmhead_state *s, const struct kernel_args *args)
{
	struct dnn_matmul_args m = { .workspace = (char *)args->workspace + s->scratch_at };

	m.a = s->x, m.b = find_matrix_row(s, args->in[1], s->tile * s->words), m.out = s->logits;
	cpu_matmul_run(s->tile == s->tiles - 1 ? pick_group_products(s)->logits_last : pick_group_products(s)->logits,
		       &m);
	cpu_parallel(s->parts, s->tile_loop, s);
}

/* Returns the row of the outputs for a row that is computed. */
static int64_t find_output_row(const struct lmhead_state *s, int64_t i)
{
	return s->index ? s->index[i] : i;
}

static void add_group_losses(const struct lmhead_state *s)
{
	for (int64_t i = 0; i < s->n; i++) {
		const struct lmhead_row *r = &s->row[i];
		bool counts = s->targets[s->first + i] >= 0;
		double loss = counts ? (double)r->max + log(r->sum) - (double)r->own : 0;

		if (s->losses && (counts || !s->index))
			s->losses[find_output_row(s, s->first + i)] = loss;
		if (s->best && (counts || !s->index))
			s->best[find_output_row(s, s->first + i)] = counts ? r->best : 0;
		s->result[XENT_LOSS_SUM] += loss;
		s->result[XENT_COUNT] += counts;
	}
}

/* Adds the contribution of the group's rows to dx and dw. */
static void apply_group_grads(const struct lmhead_state *s, const struct kernel_args *args)
{
	struct dnn_matmul_args m = { .a = s->grads, .workspace = (char *)args->workspace + s->scratch_at };
	const size_t bytes = (size_t)s->c * count_item_bytes(s);
	char *dx = args->out[LMHEAD_DX];

	if (args->out[LMHEAD_DW]) {
		m.b = s->x, m.out = args->out[LMHEAD_DW];
		cpu_matmul_run(s->first ? pick_group_products(s)->dw_more : pick_group_products(s)->dw, &m);
	}
	if (!dx)
		return;
	m.b = args->in[1], m.out = s->index ? s->copied : dx + (size_t)s->first * bytes;
	cpu_matmul_run(pick_group_products(s)->dx, &m);
	for (int64_t i = 0; s->index && i < s->n && s->first + i < s->computed; i++)
		memcpy(dx + (size_t)s->index[s->first + i] * bytes, (char *)s->copied + (size_t)i * bytes, bytes);
}

static void run_lmhead_group(struct lmhead_state *s, const struct kernel_args *args)
{
	for (int64_t i = 0; i < s->n; i++)
		s->row[i] = (struct lmhead_row){ .max = -INFINITY };
	s->x = s->index ? s->copied : find_matrix_row(s, args->in[0], s->first);
	if (s->index)
		copy_group_rows(s, args->in[0]);
	for (s->tile = 0; s->tile < s->tiles; s->tile++)
		run_lmhead_tile(s, args);
	add_group_losses(s);
	if (s->wants_grads) {
		cpu_parallel(s->parts, s->grads_loop, s);
		apply_group_grads(s, args);
	}
}

/* Lists the rows that count, if others can be left out, and clears what these would write. */
static void leave_out_rows(struct lmhead_state *s, const struct kernel_args *args)
{
	int32_t *index = (int32_t *)((char *)args->workspace + s->index_at), *targets = index + s->rows + s->group;
	int64_t n = 0;

	for (int64_t i = 0; i < s->rows; i++) {
		index[n] = (int32_t)i;
		targets[n] = s->targets[i];
		n += s->targets[i] >= 0;
	}
	if (n == s->rows || s->kept)
		return;
	for (int64_t i = n; i < n + s->group; i++)
		targets[i] = -1;
	if (args->out[LMHEAD_DX])
		memset(args->out[LMHEAD_DX], 0, (size_t)(s->rows * s->c) * count_item_bytes(s));
	if (s->losses)
		memset(s->losses, 0, (size_t)s->rows * sizeof(*s->losses));
	if (s->best)
		memset(s->best, 0, (size_t)s->rows * sizeof(*s->best));
	s->index = index;
	s->targets = targets;
	s->computed = n;
}

/* Runs the groups of rows in order. */
static void run_lmhead_cpu(void *state, const struct kernel_args *args)
{
	struct lmhead_state s = *(const struct lmhead_state *)state;
	char *workspace = args->workspace;

	memset(args->out[LMHEAD_RESULT], 0, XENT_RESULTS * sizeof(double));
	s.targets = args->in[2];
	s.kept = args->out[LMHEAD_LOGITS];
	s.losses = args->out[LMHEAD_LOSSES];
	s.best = args->out[LMHEAD_BEST];
	s.result = args->out[LMHEAD_RESULT];
	s.scale = args->page->inv_count * args->page->loss_scale;
	s.wants_grads = args->out[LMHEAD_DX] || args->out[LMHEAD_DW];
	s.row = (struct lmhead_row *)workspace;
	s.tops = (float *)(workspace + s.tops_at);
	s.logits = (float *)(workspace + s.tile_at);
	s.grads = workspace + s.grads_at;
	s.copied = workspace + s.copied_at;
	s.computed = s.rows;
	leave_out_rows(&s, args);
	if (args->out[LMHEAD_DW] && s.computed == 0)
		memset(args->out[LMHEAD_DW], 0, (size_t)(s.v * s.c) * sizeof(float));
	for (s.first = 0; s.first < s.computed; s.first += s.n) {
		const int64_t tail = s.rows % s.group;

		s.n = s.computed - s.first <= tail ? tail : s.group;
		run_lmhead_group(&s, args);
	}
}

extern const struct kernel lmhead_cpu;
const struct kernel lmhead_cpu = {
	.prepare = prepare_lmhead_cpu, .run = run_lmhead_cpu, .release = cpu_state_release, .impl = name_lmhead_impl
};

#else

/* Logits of a row in a tile. */
struct V(logits) {
	const float *l;
	int64_t n;
	float cap;
};

static void V(lmhead_bend)(const struct V(logits) * of, float *to)
{
	for (int64_t j = 0; j < of->n; j += LANES)
		vstore_any(to, j, vcap(vload_any(of->l, j, of->n - j, false), of->cap), of->n - j, false);
}

/* The maximum of a row of logits, ignoring NaN. */
VEC_INLINE float V(lmhead_max)(const float *l, int64_t n)
{
	vf most = vset(-__builtin_inff());

	for (int64_t j = 0; j + LANES <= n; j += LANES)
		most = vmax(vload(l, j, false), most);
	float max = vmax_lane(most);
	for (int64_t j = n / LANES * LANES; j < n; j++)
		max = l[j] > max ? l[j] : max;
	return max;
}

/* The slope of a capped logit. */
VEC_INLINE vf V(lmhead_slope)(vf logit, float cap)
{
	return cap > 0 ? 1 - logit * logit / (cap * cap) : vset(1);
}

/* Computes e^(l - max), stores it, times the slope of l, at to[at] if `to` is not NULL, and returns the sum. */
VEC_INLINE double V(lmhead_exp)(const struct V(logits) * of, float max, void *to, int64_t at, const bool bf)
{
	const float *l = of->l;
	const int64_t n = of->n;
	double sum = 0;

	for (int64_t j0 = 0; j0 < n; j0 += FOLD * LANES) {
		int64_t end = n - j0 < FOLD * LANES ? n : j0 + FOLD * LANES, j = j0;
		vf part = { 0 };

		for (; j + LANES <= end; j += LANES) {
			vf e = vexp(vload(l, j, false) - max);

			if (to)
				vstore(to, at + j, e * V(lmhead_slope)(vload(l, j, false), of->cap), bf);
			part += e;
		}
		if (j < end) {
			vf e = vexp(vload_n(l, j, (int)(end - j), false) - max);

			if (to)
				vstore_n(to, at + j, e * V(lmhead_slope)(vload_n(l, j, (int)(end - j), false), of->cap),
					 (int)(end - j), bf);
			for (int i = 0; i < end - j; i++)
				sum += (double)e[i];
		}
		sum += (double)vsum(part);
	}
	return sum;
}

/* Adds a tile's sum, relative to `max`, to the row's sum. */
VEC_INLINE void V(lmhead_join)(struct lmhead_row *row, float max, double sum)
{
	if (max > row->max) {
		row->sum = row->sum * exp((double)(row->max - max)) + sum;
		row->max = max;
	} else if (sum != 0) {
		row->sum += sum * exp((double)(max - row->max));
	}
}

/* Processes row i of a tile. Any NaN makes the row's sum NaN; a tile with only -infinity adds 0. */
static void V(lmhead_row)(const struct lmhead_state *s, int64_t i)
{
	int64_t word = s->tile * s->words, n = count_tile_words(s, s->tile), at = i * s->step + word;
	float *l = s->logits + i * s->tile_step, max, shift;
	const struct V(logits) of = { l, n, s->cap };
	int64_t target = s->targets[s->first + i] - word;
	void *to = s->wants_grads ? s->grads : NULL;
	double sum;

	if (s->cap > 0)
		V(lmhead_bend)(&of, l);
	max = V(lmhead_max)(l, n);
	shift = max == -__builtin_inff() ? 0 : max;
	if (s->kept)
		memcpy(s->kept + (s->first + i) * s->v + word, l, (size_t)n * sizeof(*l));
	if (target >= 0 && target < n)
		s->row[i].own = l[target];
	sum = s->bf16 ? V(lmhead_exp)(&of, shift, to, at, true) : V(lmhead_exp)(&of, shift, to, at, false);
	s->tops[i * s->tiles + s->tile] = max;
	for (int64_t j = n; s->best && max > s->row[i].max && j-- > 0;)
		if (!(l[j] < max))
			s->row[i].best = (int32_t)(word + j);
	V(lmhead_join)(&s->row[i], max, sum);
}

static void V(lmhead_tile_loop)(void *arg, int part, int parts)
{
	const struct lmhead_state *s = arg;
	struct cpu_range r = cpu_split(s->n, 1, part, parts);

	for (int64_t i = r.begin; i < r.end; i++)
		V(lmhead_row)(s, i);
}

VEC_INLINE void V(lmhead_scale)(void *grads, int64_t at, int64_t n, float factor, const bool bf)
{
	for (int64_t j = 0; j < n; j += LANES)
		vstore_any(grads, at + j, vload_any(grads, at + j, n - j, bf) * factor, n - j, bf);
}

/* Turns the exponentials of row i into gradients with respect to the logits. */
static void V(lmhead_grads)(const struct lmhead_state *s, int64_t i)
{
	const struct lmhead_row *row = &s->row[i];
	int64_t at = i * s->step, target = s->targets[s->first + i];
	double own = exp((double)(row->own - row->max));

	if (target < 0) {
		memset((char *)s->grads + (size_t)at * count_item_bytes(s), 0, (size_t)s->v * count_item_bytes(s));
		return;
	}
	for (int64_t t = 0; t < s->tiles; t++) {
		int64_t word = t * s->words, n = count_tile_words(s, t);
		float factor = (float)(s->scale / row->sum * exp((double)(s->tops[i * s->tiles + t] - row->max)));

		if (s->bf16)
			V(lmhead_scale)(s->grads, at + word, n, factor, true);
		else
			V(lmhead_scale)(s->grads, at + word, n, factor, false);
	}
	vstore_n(s->grads, at + target,
		 vset((float)(s->scale * (own / row->sum - 1))) * V(lmhead_slope)(vset(row->own), s->cap), 1, s->bf16);
}

static void V(lmhead_grads_loop)(void *arg, int part, int parts)
{
	const struct lmhead_state *s = arg;
	struct cpu_range r = cpu_split(s->n, 1, part, parts);

	for (int64_t i = r.begin; i < r.end; i++)
		V(lmhead_grads)(s, i);
}

#endif
