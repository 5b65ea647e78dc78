/* SPDX-License-Identifier: Apache-2.0 */
/* attention_cpu.c: causal attention in f32; each thread takes whole heads of a sequence. Queries come in blocks of 32
 * along the lanes: scores are stored as [key][query], so the softmax needs no sums across lanes. */
#ifndef CPU_PASS
#include <math.h>

#include "tracker/base/round.h"
#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/attention/attention_cpu.h"

#define ROWS 8 /* rows of a register tile */
#define QUERIES ATTENTION_QUERIES

/* One head's operands in the part's scratch, rows of `width` floats. Elements beyond seq and d are zero. */
struct attention_head {
	float *k, *v, *dk, *dv;		     /* [keys] rows */
	float *q, *dy;			     /* [QUERIES] rows; q is scaled by 1 / sqrt(d) */
	float *q_transposed, *dy_transposed; /* [width][QUERIES] */
	float *p, *ds;			     /* [keys][QUERIES] */
	float *out;			     /* [QUERIES] rows */
	int64_t row, at, first, number;
	const int32_t *places; /* of the sequence; NULL: one document */
};

#define CPU_BODY "trainer/ops/attention/attention_cpu.c"
#include "trainer/backends/cpu/each.h"

/* Creates the state shared by both ops. n_low: number of inputs of the low type. */
static int new_attention_state(const struct kernel_env *env, struct node *n, int n_low, struct attention_state **ret,
			       struct err *err)
{
	const struct tensor *qkv = n->in[n_low > 1];
	struct attention_state *s;
	int64_t wide;
	bool bf16;
	int rc = cpu_one_type(n, (struct cpu_operands){ n_low, 1 }, &bf16, err);

	if (rc)
		return rc;
	s = mem_zalloc(sizeof(*s));
	s->bf16 = bf16;
	s->attr = n->attr;
	s->spans = s->attr->window || n->in[n_low > 1 ? 4 : 1];
	s->heads = s->attr->heads;
	s->seq = s->attr->seq;
	s->c = qkv->shape.dim[1] / 3;
	s->d = s->c / s->heads;
	s->keys = round_up(s->seq, QUERIES);
	s->n_heads = qkv->shape.dim[0] / s->seq * s->heads;
	s->parts = cpu_parts(env, s->n_heads * s->seq * s->seq * s->d / 16);
	s->bf16_products = attention_bf16_takes(env, s);
	s->tiles = ((const struct cpu_module *)env->module)->tiles;
	wide = s->bf16_products ? ATTENTION_BF16_WIDE : LANES_MOST;
	s->width = round_up(s->d, wide);
	s->scratch_bytes = (size_t)(4 * s->keys * s->width + 2 * s->keys * QUERIES + 5 * QUERIES * s->width) * 4;
	if (s->bf16_products)
		s->scratch_bytes = attention_bf16_scratch_bytes(s);
	n->workspace_bytes = (size_t)s->parts * s->scratch_bytes;
	*ret = s;
	return 0;
}

static int prepare_attention_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct attention_state *s;
	int rc = new_attention_state(env, n, 1, &s, err);

	if (rc)
		return rc;
	s->loop = s->bf16_products ? attention_bf16_loop : CPU_PICK(env, attention_loop);
	*ret_state = s;
	return 0;
}

static int prepare_attention_grad_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct attention_state *s;
	int rc = new_attention_state(env, n, 3, &s, err);

	if (rc)
		return rc;
	s->loop = s->bf16_products ? attention_bf16_grad_loop : CPU_PICK(env, attention_grad_loop);
	*ret_state = s;
	return 0;
}

static void run_attention_cpu(void *state, const struct kernel_args *args)
{
	struct attention_state s = *(const struct attention_state *)state;

	s.draw = dropout_draw(&s.attr->dropout, args->page);
	s.places = args->in[1];
	s.qkv = args->in[0];
	s.y = args->out[0];
	s.lse = args->out[1];
	s.scratch = args->workspace;
	cpu_parallel(s.parts, s.loop, &s);
}

static void run_attention_grad_cpu(void *state, const struct kernel_args *args)
{
	struct attention_state s = *(const struct attention_state *)state;

	s.draw = dropout_draw(&s.attr->dropout, args->page);
	s.dy = args->in[0];
	s.qkv = args->in[1];
	s.y_in = args->in[2];
	s.lse_in = args->in[3];
	s.places = args->in[4];
	s.dqkv = args->out[0];
	s.scratch = args->workspace;
	cpu_parallel(s.parts, s.loop, &s);
}

extern const struct kernel attention_cpu, attention_grad_cpu;
const struct kernel attention_cpu = { .prepare = prepare_attention_cpu,
				      .run = run_attention_cpu,
				      .release = cpu_state_release };
const struct kernel attention_grad_cpu = { .prepare = prepare_attention_grad_cpu,
					   .run = run_attention_grad_cpu,
					   .release = cpu_state_release };

#else

/* c[i][j..] (+)= sum over k of a(i, k) b[k][j..] for ROWS values of i and nv vectors of j. */
struct V(product) {
	const float *a, *b;
	float *c;
	int64_t a_row, a_k, b_k, c_row; /* strides */
	int64_t k;			/* terms */
	bool add;
};

/* Rows whose sums and operands fit in the registers. */
#undef TILE_ROWS
#define TILE_ROWS (LANES == 16 ? ROWS : ROWS / 2)

VEC_INLINE void V(multiply_tile_rows)(const struct V(product) * p, const int first, const int nv)
{
	vf acc[TILE_ROWS][2] = { 0 };

	for (int64_t k = 0; k < p->k; k++) {
		vf b[2];

#pragma GCC unroll 2
		for (int v = 0; v < nv; v++)
			b[v] = vload(p->b, k * p->b_k + v * LANES, false);
#pragma GCC unroll 8
		for (int i = 0; i < TILE_ROWS; i++)
#pragma GCC unroll 2
			for (int v = 0; v < nv; v++)
				acc[i][v] += b[v] * p->a[(first + i) * p->a_row + k * p->a_k];
	}
#pragma GCC unroll 8
	for (int i = 0; i < TILE_ROWS; i++)
#pragma GCC unroll 2
		for (int v = 0; v < nv; v++) {
			float *c = p->c + (first + i) * p->c_row + v * LANES;

			vstore(c, 0, p->add ? acc[i][v] + vload(c, 0, false) : acc[i][v], false);
		}
}

VEC_INLINE void V(multiply_tile)(const struct V(product) * p, const int nv)
{
	for (int first = 0; first < ROWS; first += TILE_ROWS)
		V(multiply_tile_rows)(p, first, nv);
}

/* Computes all columns (a multiple of LANES). */
static inline __attribute__((unused)) void V(multiply_columns)(struct V(product) p, int64_t columns)
{
	const float *b = p.b;
	float *c = p.c;
	int64_t j = 0;

	for (; j + 2 * LANES <= columns; j += 2 * LANES) {
		p.b = b + j, p.c = c + j;
		V(multiply_tile)(&p, 2);
	}
	if (j < columns) {
		p.b = b + j, p.c = c + j;
		V(multiply_tile)(&p, 1);
	}
}

/* Rows [begin, end) of a head as floats, `stride` elements apart, starting at element `at`; zeros from seq to end. */
struct V(rows) {
	const void *from;
	int64_t stride, at, begin, end;
	float factor;
};

VEC_INLINE void V(load_rows_as)(const struct attention_state *s, const struct V(rows) * r, float *to, const bool bf)
{
	for (int64_t i = r->begin; i < r->end; i++, to += s->width)
		for (int64_t e = 0; e < s->width; e += LANES) {
			vf v = vset(0);

			if (i < s->seq && e < s->d)
				v = vload_any(r->from, r->at + i * r->stride + e, s->d - e, bf) * r->factor;
			vstore(to, e, v, false);
		}
}

static inline __attribute__((unused)) void V(load_rows)(const struct attention_state *s, const struct V(rows) r,
							float *to)
{
	s->bf16 ? V(load_rows_as)(s, &r, to, true) : V(load_rows_as)(s, &r, to, false);
}

/* Stores rows of `width` floats to elements from `at` on, `stride` apart. */
static inline __attribute__((unused)) void V(store_rows)(const struct attention_state *s, void *to,
							 const struct V(rows) r, const float *from)
{
	for (int64_t i = r.begin; i < r.end && i < s->seq; i++, from += s->width)
		for (int64_t e = 0; e < s->d; e += LANES) {
			vf v = vload(from, e, false) * r.factor;

			s->bf16 ? vstore_any(to, r.at + i * r.stride + e, v, s->d - e, true)
				: vstore_any(to, r.at + i * r.stride + e, v, s->d - e, false);
		}
}

/* Transposes [QUERIES][width] to [width][QUERIES]. */
static inline __attribute__((unused)) void V(transpose_block)(const struct attention_state *s, const float *from,
							      float *to)
{
	for (int64_t i = 0; i < QUERIES; i += LANES)
		for (int64_t e = 0; e < s->width; e += LANES) {
			vf m[LANES];

			for (int l = 0; l < LANES; l++)
				m[l] = vload(from, (i + l) * s->width + e, false);
			vturn(m);
			for (int l = 0; l < LANES; l++)
				vstore(to, (e + l) * QUERIES + i, m[l], false);
		}
}

/* Lays out one head's scratch and loads its keys and values. */
static inline __attribute__((unused)) struct attention_head V(open_head)(const struct attention_state *s, int part,
									 int64_t number)
{
	int64_t rows = s->keys * s->width, block = QUERIES * s->width, scores = s->keys * QUERIES;
	struct attention_head h = { .row = number / s->heads * s->seq, .at = number % s->heads * s->d };
	int64_t stride = 3 * s->c, at = h.row * stride + h.at;

	h.number = number;
	h.places = s->places ? s->places + h.row : NULL;
	h.first = number * s->seq * s->seq;
	h.k = (float *)(s->scratch + (size_t)part * s->scratch_bytes);
	h.v = h.k + rows;
	h.dk = h.v + rows;
	h.dv = h.dk + rows;
	h.p = h.dv + rows;
	h.ds = h.p + scores;
	h.q = h.ds + scores;
	h.dy = h.q + block;
	h.q_transposed = h.dy + block;
	h.dy_transposed = h.q_transposed + block;
	h.out = h.dy_transposed + block;
	V(load_rows)(s, (struct V(rows)){ s->qkv, stride, at + s->c, 0, s->keys, 1 }, h.k);
	V(load_rows)(s, (struct V(rows)){ s->qkv, stride, at + 2 * s->c, 0, s->keys, 1 }, h.v);
	return h;
}

static inline __attribute__((unused)) struct V(rows)
	V(make_query_rows)(const struct attention_state *s, const struct attention_head *h, int64_t i)
{
	return (struct V(rows)){ s->qkv, 3 * s->c, h->row * 3 * s->c + h->at, i, i + QUERIES, 1 / sqrtf((float)s->d) };
}

/* Keys [begin, end) of a block of queries: whole blocks, of which each query sees a part. */
struct V(keys) {
	int64_t begin, end;
};

/* The keys that queries from i on see. */
static inline __attribute__((unused)) struct V(keys)
	V(find_keys)(const struct attention_state *s, const struct attention_head *h, int64_t i)
{
	const int64_t begin = s->spans ? attention_begin(s->attr->window, h->places, i) : 0;

	return (struct V(keys)){ begin / QUERIES * QUERIES, i + QUERIES };
}

/* to[key][query] = rows of a times the transposed block b. */
static inline __attribute__((unused)) void V(compute_scores)(const struct attention_state *s, const float *a,
							     const float *b, struct V(keys) keys, float *to)
{
	for (int64_t j = keys.begin; j < keys.end; j += ROWS) {
		struct V(product) p = { .a = a + j * s->width, .b = b, .c = to + j * QUERIES };

		p.a_row = s->width, p.a_k = 1, p.b_k = QUERIES, p.c_row = QUERIES, p.k = s->d;
		V(multiply_columns)(p, QUERIES);
	}
}

/* to [QUERIES] rows = the transposed matrix m [key][query] times rows of b. */
static inline __attribute__((unused)) void V(gather_over_keys)(const struct attention_state *s, const float *m,
							       const float *b, struct V(keys) keys, float *to)
{
	for (int64_t q = 0; q < QUERIES; q += ROWS) {
		struct V(product) p = { .a = m + keys.begin * QUERIES + q,
					.b = b + keys.begin * s->width,
					.c = to + q * s->width };

		p.a_row = 1, p.a_k = QUERIES, p.b_k = s->width, p.c_row = s->width;
		p.k = keys.end - QUERIES + q + ROWS - keys.begin;
		V(multiply_columns)(p, s->width);
	}
}

/* to[key] += m [key][query] times the block's rows b. */
static inline __attribute__((unused)) void V(scatter_to_keys)(const struct attention_state *s, const float *m,
							      const float *b, struct V(keys) keys, float *to)
{
	for (int64_t j = keys.begin; j < keys.end; j += ROWS) {
		struct V(product) p = { .a = m + j * QUERIES, .b = b, .c = to + j * s->width, .add = true };

		p.a_row = QUERIES, p.a_k = 1, p.b_k = s->width, p.c_row = s->width, p.k = QUERIES;
		V(multiply_columns)(p, s->width);
	}
}

/* What LANES queries from i on see: keys from `all` to i are seen by every one. */
struct V(view) {
	int64_t i, all;
	int begin[LANES];
};

static inline __attribute__((unused)) struct V(view)
	V(make_view)(const struct attention_state *s, const struct attention_head *h, int64_t i)
{
	struct V(view) v = { .i = i };

	for (int l = 0; s->spans && l < LANES && i + l < s->seq; l++) {
		v.begin[l] = (int)attention_begin(s->attr->window, h->places, i + l);
		v.all = v.begin[l];
	}
	return v;
}

/* All-ones in the lanes whose query sees key j. */
VEC_INLINE vi V(mask_visible_queries)(const struct V(view) * v, int64_t j)
{
	const int64_t after = j - v->i;
	vi seen = vlane() >= (int)(after < -1 ? -1 : after > LANES ? LANES : after), begin;

	if (j >= v->all)
		return seen;
	memcpy(&begin, v->begin, sizeof(begin));
	return seen & (begin <= (int)j);
}

/* Dropout factors of queries i.. at key j: 0 where dropped. */
static inline __attribute__((unused)) vf V(draw_dropout_factors)(const struct attention_state *s,
								 const struct attention_head *h, int64_t i, int64_t j)
{
	float m[LANES];

	for (int l = 0; l < LANES; l++)
		m[l] = dropout_keeps(&s->draw, (uint64_t)(h->first + (i + l) * s->seq + j)) ? (float)s->draw.scale : 0;
	return vload(m, 0, false);
}

/* Turns the scores of LANES queries into probabilities, not yet divided by their sum. Returns the sum and the
 * maximum. */
static inline __attribute__((unused)) vf
V(compute_softmax)(const struct attention_state *s, const struct attention_head *h, int64_t i, float *p, vf *ret_max)
{
	vf max = vset(-__builtin_inff()), sum = { 0 };
	int64_t block = i / QUERIES * QUERIES;
	const struct V(keys) keys = V(find_keys)(s, h, block);
	const struct V(view) view = V(make_view)(s, h, i);

	for (int64_t j = keys.begin; j < keys.end; j++) {
		vf x = vload(p, j * QUERIES, false);

		if (s->attr->cap > 0) {
			x = vcap(x, (float)s->attr->cap);
			vstore(p, j * QUERIES, x, false);
		}
		if (j > block || j < view.all)
			x = vblend(V(mask_visible_queries)(&view, j), x, vset(-__builtin_inff()));
		max = vmax(x, max);
	}
	for (int64_t j = keys.begin; j < keys.end; j++) {
		vf x = vexp(vload(p, j * QUERIES, false) - max);

		if (j > block || j < view.all)
			x = (vf)((vi)x & V(mask_visible_queries)(&view, j));
		sum += x;
		vstore(p, j * QUERIES, s->attr->dropout.p > 0 ? x * V(draw_dropout_factors)(s, h, i, j) : x, false);
	}
	*ret_max = max;
	return sum;
}

/* Forward pass of one block of queries. */
static inline __attribute__((unused)) void V(run_forward_block)(const struct attention_state *s,
								const struct attention_head *h, int64_t i)
{
	float sums[QUERIES], maxima[QUERIES];
	const struct V(keys) keys = V(find_keys)(s, h, i);
	struct V(rows) r = V(make_query_rows)(s, h, i);

	V(load_rows)(s, r, h->q);
	V(transpose_block)(s, h->q, h->q_transposed);
	V(compute_scores)(s, h->k, h->q_transposed, keys, h->p);
	for (int64_t l = 0; l < QUERIES; l += LANES) {
		vf max, sum = V(compute_softmax)(s, h, i + l, h->p + l, &max);

		vstore(sums, l, sum, false);
		vstore(maxima, l, max, false);
	}
	V(gather_over_keys)(s, h->p, h->v, keys, h->out);
	r = (struct V(rows)){ NULL, s->c, h->row * s->c + h->at, i, i + 1, 1 };
	for (int64_t l = 0; l < QUERIES && i + l < s->seq; l++, r.begin++, r.end++) {
		r.factor = 1 / sums[l];
		V(store_rows)(s, s->y, r, h->out + l * s->width);
		s->lse[(h->row + i + l) * s->heads + h->number % s->heads] = maxima[l] + logf(sums[l]);
	}
}

static void V(attention_loop)(void *arg, int part, int parts)
{
	const struct attention_state *s = arg;
	struct cpu_range r = cpu_split(s->n_heads, 1, part, parts);

	for (int64_t number = r.begin; number < r.end; number++) {
		struct attention_head h = V(open_head)(s, part, number);

		for (int64_t i = 0; i < s->seq; i += QUERIES)
			V(run_forward_block)(s, &h, i);
	}
}

/* Turns p into probabilities after dropout and ds (holding dy.v) into gradients of the scores, for LANES queries. */
static inline __attribute__((unused)) void V(softmax_grad)(const struct attention_state *s,
							   const struct attention_head *h, int64_t i, vf inner)
{
	int64_t block = i / QUERIES * QUERIES;
	const struct V(keys) keys = V(find_keys)(s, h, block);
	const struct V(view) view = V(make_view)(s, h, i);
	float *p = h->p + (i - block), *ds = h->ds + (i - block), lse[LANES] = { 0 };

	for (int64_t l = 0; l < LANES && i + l < s->seq; l++)
		lse[l] = s->lse_in[(h->row + i + l) * s->heads + h->number % s->heads];
	for (int64_t j = keys.begin; j < keys.end; j++) {
		vf score = vload(p, j * QUERIES, false), d = vload(ds, j * QUERIES, false), slope = vset(1), kept, x;

		if (s->attr->cap > 0) {
			score = vcap(score, (float)s->attr->cap);
			slope -= score * score / (float)(s->attr->cap * s->attr->cap);
		}
		x = vexp(score - vload(lse, 0, false));

		if (j > block || j < view.all)
			x = (vf)((vi)x & V(mask_visible_queries)(&view, j));
		kept = x;
		if (s->attr->dropout.p > 0) {
			vf m = V(draw_dropout_factors)(s, h, i, j);

			kept *= m;
			d *= m;
		}
		vstore(p, j * QUERIES, kept, false);
		vstore(ds, j * QUERIES, x * (d - inner) * slope, false);
	}
}

/* Backward pass of one block of queries: adds to dk and dv, stores dq. */
static inline __attribute__((unused)) void V(run_backward_block)(const struct attention_state *s,
								 const struct attention_head *h, int64_t i)
{
	struct V(rows) r = V(make_query_rows)(s, h, i), y = { s->y_in, s->c, h->row * s->c + h->at, i, i + QUERIES, 1 };
	const struct V(keys) keys = V(find_keys)(s, h, i);
	float inner[QUERIES];

	V(load_rows)(s, y, h->out);
	y.from = s->dy;
	V(load_rows)(s, y, h->dy);
	for (int64_t l = 0; l < QUERIES; l++) {
		vf sum = { 0 };

		for (int64_t e = 0; e < s->width; e += LANES)
			sum += vload(h->out, l * s->width + e, false) * vload(h->dy, l * s->width + e, false);
		inner[l] = vsum(sum);
	}
	V(load_rows)(s, r, h->q);
	V(transpose_block)(s, h->q, h->q_transposed);
	V(transpose_block)(s, h->dy, h->dy_transposed);
	V(compute_scores)(s, h->k, h->q_transposed, keys, h->p);
	V(compute_scores)(s, h->v, h->dy_transposed, keys, h->ds);
	for (int64_t l = 0; l < QUERIES; l += LANES)
		V(softmax_grad)(s, h, i + l, vload(inner, l, false));
	V(scatter_to_keys)(s, h->p, h->dy, keys, h->dv);
	V(scatter_to_keys)(s, h->ds, h->q, keys, h->dk);
	V(gather_over_keys)(s, h->ds, h->k, keys, h->out);
	V(store_rows)(s, s->dqkv, r, h->out); /* has q's scale */
}

static void V(attention_grad_loop)(void *arg, int part, int parts)
{
	const struct attention_state *s = arg;
	struct cpu_range r = cpu_split(s->n_heads, 1, part, parts);

	for (int64_t number = r.begin; number < r.end; number++) {
		struct attention_head h = V(open_head)(s, part, number);
		struct V(rows) to = { NULL, 3 * s->c, h.row * 3 * s->c + h.at + s->c, 0, s->seq, 1 };

		memset(h.dk, 0, (size_t)(2 * s->keys * s->width) * sizeof(float)); /* dv follows dk */
		for (int64_t i = 0; i < s->seq; i += QUERIES)
			V(run_backward_block)(s, &h, i);
		V(store_rows)(s, s->dqkv, to, h.dk);
		to.at += s->c;
		V(store_rows)(s, s->dqkv, to, h.dv);
	}
}

#endif
