/* lmhead_cpu.c: the classifier with its loss, for a group of rows and a tile of words at a time: while a tile's logits
 * are in the cache they become powers of e, beside the largest of the row in this tile, which are all that is kept of
 * them, in the operands' type. When a row's tiles are done its sum is known, and the powers become the gradients. Each
 * group reads w twice, and reads and writes dw, once. */
#ifndef CPU_PASS
#include <math.h>

#include "trainer/backends/cpu/cpu_matmul.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/lmhead/lmhead.h"
#include "trainer/ops/xent/xent.h"

#define TILE_BYTES ((int64_t)2 << 20)  /* of logits, about */
#define GRADS_BYTES ((int64_t)54 << 20) /* of a group, about */
#define WORDS_MAX 4096 /* of a tile: the library packs w's part of it */
#define ROWS_MIN 32
#define ROWS_MAX 1024
#define ROWS_STEP 16
#define LINE 32 /* rows of logits and gradients begin with a line of memory */
#define FOLD 64 /* vectors that are summed in f32 before they join the row's f64 sum */

/* Products of a group, by its rows: only the last one has fewer than the others. */
struct lmhead_products {
	struct cpu_matmul *logits, *logits_last; /* of a tile, and of the last one */
	struct cpu_matmul *dx, *dw, *dw_more;	 /* dw_more adds to what is there */
};

/* What is known of a row behind some tiles. */
struct lmhead_row {
	double sum; /* of e^(logit - max) */
	float max, own; /* own: the target's logit */
};

struct lmhead_state {
	cpu_part_fn *tile_loop, *grads_loop;
	struct lmhead_products whole, tail;
	int64_t rows, group, c, v, step; /* step: from one row of gradients to the next */
	int64_t words, tile_step, tiles; /* of a tile; from one row of its logits to the next; of v */
	int parts;
	bool bf16;
	size_t tops_at, tile_at, grads_at, scratch_at; /* in the workspace */
	/* of one run */
	const int32_t *targets;
	float *kept;
	double scale, *losses, *result;
	bool wants_grads;
	int64_t first, n; /* rows of the group */
	int64_t tile;
	struct lmhead_row *row; /* [n] */
	float *tops;		/* [n][tiles]: the largest of a row in each tile */
	float *logits;		/* of the tile: [n][tile_step] */
	void *grads;		/* in the operands' type: [n][step] */
};

static inline size_t item_bytes(const struct lmhead_state *s)
{
	return s->bf16 ? sizeof(uint16_t) : sizeof(float);
}

/* The last tile has fewer than the others. */
static inline int64_t words_of(const struct lmhead_state *s, int64_t tile)
{
	int64_t left = s->v - tile * s->words;

	return left < s->words ? left : s->words;
}

#define CPU_BODY "trainer/ops/lmhead/lmhead_cpu.c"
#include "trainer/backends/cpu/each.h"

static void want_scratch(size_t *most, const struct cpu_matmul *m)
{
	if (m && cpu_matmul_workspace_bytes(m) > *most)
		*most = cpu_matmul_workspace_bytes(m);
}

static int logits_get(struct lmhead_products *ret, const struct kernel_env *env, const struct lmhead_state *s,
		      int64_t rows, struct err *err)
{
	struct dnn_matmul_spec spec = {
		.m = rows, .n = s->words, .k = s->c, .bf16 = s->bf16, .b_turned = true, .out_step = s->tile_step
	};
	int rc = cpu_matmul_get(&ret->logits, env, &spec, err);

	spec.n = words_of(s, s->tiles - 1);
	return rc ? rc : cpu_matmul_get(&ret->logits_last, env, &spec, err);
}

static int dx_get(struct lmhead_products *ret, const struct kernel_env *env, const struct lmhead_state *s, int64_t rows,
		  struct err *err)
{
	const struct dnn_matmul_spec spec = {
		.m = rows, .n = s->c, .k = s->v, .bf16 = s->bf16, .out_bf16 = s->bf16, .a_step = s->step
	};

	return cpu_matmul_get(&ret->dx, env, &spec, err);
}

static int dw_get(struct lmhead_products *ret, const struct kernel_env *env, const struct lmhead_state *s, int64_t rows,
		  struct err *err)
{
	struct dnn_matmul_spec spec = {
		.m = s->v, .n = s->c, .k = rows, .bf16 = s->bf16, .a_turned = true, .a_step = s->step
	};
	int rc = cpu_matmul_get(&ret->dw, env, &spec, err);

	spec.add = true;
	return rc ? rc : cpu_matmul_get(&ret->dw_more, env, &spec, err);
}

/* The products of a group of so many rows; none without rows. */
static int products_of(struct lmhead_products *ret, const struct kernel_env *env, const struct lmhead_state *s,
		       const struct node *n, int64_t rows, struct err *err)
{
	int rc = 0;

	if (rows == 0)
		return 0;
	rc = logits_get(ret, env, s, rows, err);
	if (!rc && n->out[LMHEAD_DX])
		rc = dx_get(ret, env, s, rows, err);
	if (!rc && n->out[LMHEAD_DW])
		rc = dw_get(ret, env, s, rows, err);
	return rc;
}

/* So many of `n` to a piece that the pieces, as few as `most` allows, are of one size. */
static int64_t even_share(int64_t n, int64_t most)
{
	int64_t pieces = (n + most - 1) / most;

	return (n + pieces - 1) / pieces;
}

static int64_t round_to(int64_t n, int64_t step)
{
	return (n + step - 1) / step * step;
}

static int64_t within(int64_t n, int64_t least, int64_t most)
{
	return n < least ? least : n > most ? most : n;
}

/* Groups, and tiles, of one size, as few as the bytes allow: a small last group would cost a pass over w and dw for
 * little work. */
static void share_out(struct lmhead_state *s, bool grads)
{
	int64_t row_bytes = s->step * (int64_t)item_bytes(s);
	int64_t most = grads ? within(GRADS_BYTES / row_bytes, ROWS_MIN, ROWS_MAX) : ROWS_MAX;

	s->group = s->rows;
	if (s->rows > most)
		s->group = round_to(even_share(s->rows, most), ROWS_STEP);
	most = within(TILE_BYTES / (int64_t)sizeof(float) / (s->group > 0 ? s->group : 1), 1, WORDS_MAX);
	s->words = s->v;
	if (s->v > most)
		s->words = round_to(even_share(s->v, most), LINE);
	s->tiles = (s->v + s->words - 1) / s->words;
	s->tile_step = round_to(s->words, LINE);
}

static size_t round_up(size_t bytes)
{
	return (size_t)round_to((int64_t)bytes, 64);
}

static size_t most_scratch(const struct lmhead_state *s)
{
	const struct lmhead_products *p[] = { &s->whole, &s->tail };
	size_t most = 0;

	for (int i = 0; i < 2; i++) {
		want_scratch(&most, p[i]->logits);
		want_scratch(&most, p[i]->logits_last);
		want_scratch(&most, p[i]->dx);
		want_scratch(&most, p[i]->dw);
		want_scratch(&most, p[i]->dw_more);
	}
	return most;
}

static void lay_out(struct lmhead_state *s, struct node *n, bool grads)
{
	s->tops_at = round_up((size_t)s->group * sizeof(struct lmhead_row));
	s->tile_at = round_up(s->tops_at + (size_t)(s->group * s->tiles) * sizeof(float));
	s->grads_at = s->tile_at + (size_t)(s->group * s->tile_step) * sizeof(float);
	s->scratch_at = s->grads_at + (grads ? (size_t)(s->group * s->step) * item_bytes(s) : 0);
	n->workspace_bytes = s->scratch_at + most_scratch(s);
}

static int lmhead_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	bool bf16, grads = n->out[LMHEAD_DX] || n->out[LMHEAD_DW];
	struct lmhead_state *s;
	void *state;
	int rc = cpu_one_type(n, (struct cpu_operands){ 2, 0 }, &bf16, err);

	if (!rc)
		rc = cpu_state_new(sizeof(*s), &state, err);
	if (rc)
		return rc;
	s = state;
	s->tile_loop = CPU_PICK(env, lmhead_tile_loop);
	s->grads_loop = CPU_PICK(env, lmhead_grads_loop);
	s->bf16 = bf16;
	s->rows = n->in[0]->shape.dim[0];
	s->c = n->in[0]->shape.dim[1];
	s->v = n->in[1]->shape.dim[0];
	s->step = round_to(s->v, LINE);
	share_out(s, grads);
	s->parts = cpu_parts(env, s->group * s->words);
	rc = products_of(&s->whole, env, s, n, s->group, err);
	if (!rc && s->group > 0)
		rc = products_of(&s->tail, env, s, n, s->rows % s->group, err);
	if (rc) {
		cpu_state_release(s);
		return rc;
	}
	lay_out(s, n, grads);
	*ret_state = s;
	return 0;
}

static const char *lmhead_impl(const void *state)
{
	const struct lmhead_state *s = state;

	return s->whole.logits ? cpu_matmul_impl(s->whole.logits) : "none";
}

static const struct lmhead_products *products(const struct lmhead_state *s)
{
	return s->n == s->group ? &s->whole : &s->tail;
}

static const void *row_of(const struct lmhead_state *s, const void *matrix, int64_t row)
{
	return (const char *)matrix + (size_t)(row * s->c) * item_bytes(s);
}

static int run_tile(struct lmhead_state *s, const struct kernel_args *args, struct err *err)
{
	struct dnn_matmul_args m = { .workspace = (char *)args->workspace + s->scratch_at };
	int rc;

	m.a = row_of(s, args->in[0], s->first), m.b = row_of(s, args->in[1], s->tile * s->words), m.out = s->logits;
	rc = cpu_matmul_run(s->tile == s->tiles - 1 ? products(s)->logits_last : products(s)->logits, &m, err);
	if (!rc)
		cpu_parallel(s->parts, s->tile_loop, s);
	return rc;
}

static void add_losses(const struct lmhead_state *s)
{
	for (int64_t i = 0; i < s->n; i++) {
		const struct lmhead_row *r = &s->row[i];
		bool counts = s->targets[s->first + i] >= 0;
		double loss = counts ? (double)r->max + log(r->sum) - (double)r->own : 0;

		if (s->losses)
			s->losses[s->first + i] = loss;
		s->result[XENT_LOSS_SUM] += loss;
		s->result[XENT_COUNT] += counts;
	}
}

/* What the group's rows give to dx and dw. */
static int use_grads(const struct lmhead_state *s, const struct kernel_args *args, struct err *err)
{
	struct dnn_matmul_args m = { .a = s->grads, .workspace = (char *)args->workspace + s->scratch_at };
	int rc = 0;

	if (args->out[LMHEAD_DX]) {
		m.b = args->in[1];
		m.out = (char *)args->out[LMHEAD_DX] + (size_t)(s->first * s->c) * item_bytes(s);
		rc = cpu_matmul_run(products(s)->dx, &m, err);
	}
	if (!rc && args->out[LMHEAD_DW]) {
		m.b = row_of(s, args->in[0], s->first), m.out = args->out[LMHEAD_DW];
		rc = cpu_matmul_run(s->first ? products(s)->dw_more : products(s)->dw, &m, err);
	}
	return rc;
}

static int run_group(struct lmhead_state *s, const struct kernel_args *args, struct err *err)
{
	int rc = 0;

	for (int64_t i = 0; i < s->n; i++)
		s->row[i] = (struct lmhead_row){ .max = -INFINITY };
	for (s->tile = 0; !rc && s->tile < s->tiles; s->tile++)
		rc = run_tile(s, args, err);
	if (rc)
		return rc;
	add_losses(s);
	if (!s->wants_grads)
		return 0;
	cpu_parallel(s->parts, s->grads_loop, s);
	return use_grads(s, args, err);
}

static int lmhead_run(void *state, const struct kernel_args *args, struct err *err)
{
	struct lmhead_state s = *(const struct lmhead_state *)state;
	char *workspace = args->workspace;
	int rc = 0;

	memset(args->out[LMHEAD_RESULT], 0, XENT_RESULTS * sizeof(double));
	if (args->out[LMHEAD_DW] && s.rows == 0)
		memset(args->out[LMHEAD_DW], 0, (size_t)(s.v * s.c) * sizeof(float));
	s.targets = args->in[2];
	s.kept = args->out[LMHEAD_LOGITS];
	s.losses = args->out[LMHEAD_LOSSES];
	s.result = args->out[LMHEAD_RESULT];
	s.scale = args->page->inv_count * args->page->loss_scale;
	s.wants_grads = args->out[LMHEAD_DX] || args->out[LMHEAD_DW];
	s.row = (struct lmhead_row *)workspace;
	s.tops = (float *)(workspace + s.tops_at);
	s.logits = (float *)(workspace + s.tile_at);
	s.grads = workspace + s.grads_at;
	for (s.first = 0; !rc && s.first < s.rows; s.first += s.n) {
		s.n = s.rows - s.first < s.group ? s.rows - s.first : s.group;
		rc = run_group(&s, args, err);
	}
	return rc;
}

extern const struct kernel lmhead_cpu;
const struct kernel lmhead_cpu = {
	.prepare = lmhead_prepare, .run = lmhead_run, .release = cpu_state_release, .impl = lmhead_impl
};

#else

/* A NaN is passed over. */
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

/* e^(l - max), to `to` from `at` on where there is such; returns the sum. */
VEC_INLINE double V(lmhead_exp)(const float *l, int64_t n, float max, void *to, int64_t at, const bool bf)
{
	double sum = 0;

	for (int64_t j0 = 0; j0 < n; j0 += FOLD * LANES) {
		int64_t end = n - j0 < FOLD * LANES ? n : j0 + FOLD * LANES, j = j0;
		vf part = { 0 };

		for (; j + LANES <= end; j += LANES) {
			vf e = vexp(vload(l, j, false) - max);

			if (to)
				vstore(to, at + j, e, bf);
			part += e;
		}
		if (j < end) {
			vf e = vexp(vload_n(l, j, (int)(end - j), false) - max);

			if (to)
				vstore_n(to, at + j, e, (int)(end - j), bf);
			for (int i = 0; i < end - j; i++)
				sum += (double)e[i];
		}
		sum += (double)vsum(part);
	}
	return sum;
}

/* The sum of powers beside `max` joins the row's. */
VEC_INLINE void V(lmhead_join)(struct lmhead_row *row, float max, double sum)
{
	if (max > row->max) {
		row->sum = row->sum * exp((double)(row->max - max)) + sum;
		row->max = max;
	} else if (sum != 0) {
		row->sum += sum * exp((double)(max - row->max));
	}
}

/* Row i of a tile. A NaN anywhere makes the row's sum NaN; a tile of nothing but -infinity adds 0. */
static void V(lmhead_row)(const struct lmhead_state *s, int64_t i)
{
	int64_t word = s->tile * s->words, n = words_of(s, s->tile), at = i * s->step + word;
	const float *l = s->logits + i * s->tile_step;
	float max = V(lmhead_max)(l, n), beside = max == -__builtin_inff() ? 0 : max;
	int64_t target = s->targets[s->first + i] - word;
	void *to = s->wants_grads ? s->grads : NULL;
	double sum;

	if (s->kept)
		memcpy(s->kept + (s->first + i) * s->v + word, l, (size_t)n * sizeof(*l));
	if (target >= 0 && target < n)
		s->row[i].own = l[target];
	sum = s->bf16 ? V(lmhead_exp)(l, n, beside, to, at, true) : V(lmhead_exp)(l, n, beside, to, at, false);
	s->tops[i * s->tiles + s->tile] = max;
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

/* From powers to gradients, with respect to the logits. */
static void V(lmhead_grads)(const struct lmhead_state *s, int64_t i)
{
	const struct lmhead_row *row = &s->row[i];
	int64_t at = i * s->step, target = s->targets[s->first + i];
	double own = exp((double)(row->own - row->max));

	if (target < 0) {
		memset((char *)s->grads + (size_t)at * item_bytes(s), 0, (size_t)s->v * item_bytes(s));
		return;
	}
	for (int64_t t = 0; t < s->tiles; t++) {
		int64_t word = t * s->words, n = words_of(s, t);
		float factor = (float)(s->scale / row->sum * exp((double)(s->tops[i * s->tiles + t] - row->max)));

		if (s->bf16)
			V(lmhead_scale)(s->grads, at + word, n, factor, true);
		else
			V(lmhead_scale)(s->grads, at + word, n, factor, false);
	}
	vstore_n(s->grads, at + target, vset((float)(s->scale * (own / row->sum - 1))), 1, s->bf16);
}

static void V(lmhead_grads_loop)(void *arg, int part, int parts)
{
	const struct lmhead_state *s = arg;
	struct cpu_range r = cpu_split(s->n, 1, part, parts);

	for (int64_t i = r.begin; i < r.end; i++)
		V(lmhead_grads)(s, i);
}

#endif
