/* attention_cpu.c: causal attention; each head of each sequence is one thread's. Computed in f32. Queries come in
 * blocks of 32 that lie along the lanes: scores are kept as [key][query], so the softmax needs no sums across lanes. */
#ifndef CPU_PASS
#include <math.h>

#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/attention/attention_cpu.h"

#define ROWS 8 /* of a tile of products held in registers */
#define QUERIES ATTENTION_QUERIES

/* One head's operands in the part's scratch, rows of `width` floats; what lies beyond seq and d is zero. */
struct attention_head {
	float *k, *v, *dk, *dv;	    /* [keys] rows */
	float *q, *dy;		    /* [QUERIES] rows; q is scaled by 1 / sqrt(d) */
	float *q_turned, *dy_turned; /* [width][QUERIES] */
	float *p, *ds;		    /* [keys][QUERIES] */
	float *out;		    /* [QUERIES] rows */
	int64_t row, at, first, number;
};

#define CPU_BODY "trainer/ops/attention/attention_cpu.c"
#include "trainer/backends/cpu/each.h"

/* n_low: inputs of the low type. */
static int attention_new(const struct kernel_env *env, struct node *n, int n_low, struct attention_state **ret,
			 struct err *err)
{
	const struct tensor *qkv = n->in[n_low > 1];
	struct attention_state *s;
	void *state;
	int64_t wide;
	bool bf16;
	int rc = cpu_one_type(n, (struct cpu_operands){ n_low, 1 }, &bf16, err);

	if (!rc)
		rc = cpu_state_new(sizeof(*s), &state, err);
	if (rc)
		return rc;
	s = state;
	s->bf16 = bf16;
	s->attr = n->attr;
	s->heads = s->attr->heads;
	s->seq = s->attr->seq;
	s->c = qkv->shape.dim[1] / 3;
	s->d = s->c / s->heads;
	s->keys = (s->seq + QUERIES - 1) / QUERIES * QUERIES;
	s->n_heads = qkv->shape.dim[0] / s->seq * s->heads;
	s->parts = cpu_parts(env, s->n_heads * s->seq * s->seq * s->d / 16);
	s->bf16_products = attention_bf16_takes(env, s);
	s->tiles = ((const struct cpu_module *)env->module)->tiles;
	wide = s->bf16_products ? ATTENTION_BF16_WIDE : LANES_MOST;
	s->width = (s->d + wide - 1) / wide * wide;
	s->scratch_bytes = (size_t)(4 * s->keys * s->width + 2 * s->keys * QUERIES + 5 * QUERIES * s->width) * 4;
	if (s->bf16_products)
		s->scratch_bytes = attention_bf16_scratch_bytes(s);
	n->workspace_bytes = (size_t)s->parts * s->scratch_bytes;
	*ret = s;
	return 0;
}

static int attention_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct attention_state *s;
	int rc = attention_new(env, n, 1, &s, err);

	if (rc)
		return rc;
	s->loop = s->bf16_products ? attention_bf16_loop : CPU_PICK(env, attention_loop);
	*ret_state = s;
	return 0;
}

static int attention_grad_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct attention_state *s;
	int rc = attention_new(env, n, 3, &s, err);

	if (rc)
		return rc;
	s->loop = s->bf16_products ? attention_bf16_grad_loop : CPU_PICK(env, attention_grad_loop);
	*ret_state = s;
	return 0;
}

static int attention_run(void *state, const struct kernel_args *args, struct err *err)
{
	struct attention_state s = *(const struct attention_state *)state;

	(void)err;
	s.draw = dropout_draw(&s.attr->dropout, args->page);
	s.qkv = args->in[0];
	s.y = args->out[0];
	s.lse = args->out[1];
	s.scratch = args->workspace;
	cpu_parallel(s.parts, s.loop, &s);
	return 0;
}

static int attention_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
	struct attention_state s = *(const struct attention_state *)state;

	(void)err;
	s.draw = dropout_draw(&s.attr->dropout, args->page);
	s.dy = args->in[0];
	s.qkv = args->in[1];
	s.y_in = args->in[2];
	s.lse_in = args->in[3];
	s.dqkv = args->out[0];
	s.scratch = args->workspace;
	cpu_parallel(s.parts, s.loop, &s);
	return 0;
}

extern const struct kernel attention_cpu, attention_grad_cpu;
const struct kernel attention_cpu = { .prepare = attention_prepare,
				      .run = attention_run,
				      .release = cpu_state_release };
const struct kernel attention_grad_cpu = { .prepare = attention_grad_prepare,
					   .run = attention_grad_run,
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

VEC_INLINE void V(tile_rows)(const struct V(product) * p, const int first, const int nv)
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

VEC_INLINE void V(tile)(const struct V(product) * p, const int nv)
{
	for (int first = 0; first < ROWS; first += TILE_ROWS)
		V(tile_rows)(p, first, nv);
}

/* All of `columns` (a multiple of LANES). */
static inline __attribute__((unused)) void V(tiles)(struct V(product) p, int64_t columns)
{
	const float *b = p.b;
	float *c = p.c;
	int64_t j = 0;

	for (; j + 2 * LANES <= columns; j += 2 * LANES) {
		p.b = b + j, p.c = c + j;
		V(tile)(&p, 2);
	}
	if (j < columns) {
		p.b = b + j, p.c = c + j;
		V(tile)(&p, 1);
	}
}

/* Rows [begin, end) of a head, `stride` elements apart from element `at` on, as floats; zeros from seq to end. */
struct V(rows) {
	const void *from;
	int64_t stride, at, begin, end;
	float factor;
};

VEC_INLINE void V(rows_load)(const struct attention_state *s, const struct V(rows) * r, float *to, const bool bf)
{
	for (int64_t i = r->begin; i < r->end; i++, to += s->width)
		for (int64_t e = 0; e < s->width; e += LANES) {
			vf v = vset(0);

			if (i < s->seq && e < s->d)
				v = vload_any(r->from, r->at + i * r->stride + e, s->d - e, bf) * r->factor;
			vstore(to, e, v, false);
		}
}

static inline __attribute__((unused)) void V(load)(const struct attention_state *s, const struct V(rows) r, float *to)
{
	s->bf16 ? V(rows_load)(s, &r, to, true) : V(rows_load)(s, &r, to, false);
}

/* Rows of `width` floats to the elements from `at` on, `stride` apart. */
static inline __attribute__((unused)) void V(store)(const struct attention_state *s, void *to, const struct V(rows) r,
						    const float *from)
{
	for (int64_t i = r.begin; i < r.end && i < s->seq; i++, from += s->width)
		for (int64_t e = 0; e < s->d; e += LANES) {
			vf v = vload(from, e, false) * r.factor;

			s->bf16 ? vstore_any(to, r.at + i * r.stride + e, v, s->d - e, true)
				: vstore_any(to, r.at + i * r.stride + e, v, s->d - e, false);
		}
}

/* [QUERIES][width] to [width][QUERIES]. */
static inline __attribute__((unused)) void V(turn)(const struct attention_state *s, const float *from, float *to)
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

static inline __attribute__((unused)) struct attention_head V(head_open)(const struct attention_state *s, int part,
									 int64_t number)
{
	int64_t rows = s->keys * s->width, block = QUERIES * s->width, scores = s->keys * QUERIES;
	struct attention_head h = { .row = number / s->heads * s->seq, .at = number % s->heads * s->d };
	int64_t stride = 3 * s->c, at = h.row * stride + h.at;

	h.number = number;
	h.first = number * s->seq * s->seq;
	h.k = (float *)(s->scratch + (size_t)part * s->scratch_bytes);
	h.v = h.k + rows;
	h.dk = h.v + rows;
	h.dv = h.dk + rows;
	h.p = h.dv + rows;
	h.ds = h.p + scores;
	h.q = h.ds + scores;
	h.dy = h.q + block;
	h.q_turned = h.dy + block;
	h.dy_turned = h.q_turned + block;
	h.out = h.dy_turned + block;
	V(load)(s, (struct V(rows)){ s->qkv, stride, at + s->c, 0, s->keys, 1 }, h.k);
	V(load)(s, (struct V(rows)){ s->qkv, stride, at + 2 * s->c, 0, s->keys, 1 }, h.v);
	return h;
}

static inline __attribute__((unused)) struct V(rows) V(queries)(const struct attention_state *s,
								const struct attention_head *h, int64_t i)
{
	return (struct V(rows)){ s->qkv,	  3 * s->c, h->row * 3 * s->c + h->at, i, i + QUERIES,
				 1 / sqrtf((float)s->d) };
}

/* to[key][query] = rows of a times the turned block b, for keys below i + QUERIES. */
static inline __attribute__((unused)) void V(scores)(const struct attention_state *s, const float *a, const float *b,
						     int64_t i, float *to)
{
	for (int64_t j = 0; j < i + QUERIES; j += ROWS) {
		struct V(product) p = { .a = a + j * s->width, .b = b, .c = to + j * QUERIES };

		p.a_row = s->width, p.a_k = 1, p.b_k = QUERIES, p.c_row = QUERIES, p.k = s->d;
		V(tiles)(p, QUERIES);
	}
}

/* to [QUERIES] rows = the turned matrix m [key][query] times rows of b. */
static inline __attribute__((unused)) void V(gather)(const struct attention_state *s, const float *m, const float *b,
						     int64_t i, float *to)
{
	for (int64_t q = 0; q < QUERIES; q += ROWS) {
		struct V(product) p = { .a = m + q, .b = b, .c = to + q * s->width };

		p.a_row = 1, p.a_k = QUERIES, p.b_k = s->width, p.c_row = s->width, p.k = i + q + ROWS;
		V(tiles)(p, s->width);
	}
}

/* to[key] += m [key][query] times the block's rows b. */
static inline __attribute__((unused)) void V(scatter)(const struct attention_state *s, const float *m, const float *b,
						      int64_t i, float *to)
{
	for (int64_t j = 0; j < i + QUERIES; j += ROWS) {
		struct V(product) p = { .a = m + j * QUERIES, .b = b, .c = to + j * s->width, .add = true };

		p.a_row = QUERIES, p.a_k = 1, p.b_k = s->width, p.c_row = s->width, p.k = QUERIES;
		V(tiles)(p, s->width);
	}
}

/* Ones in the lanes whose query, i + lane, may look at key j. */
VEC_INLINE vi V(sees)(int64_t i, int64_t j)
{
	return vlane() >= (int)(j - i < -1 ? -1 : j - i > LANES ? LANES : j - i);
}

/* Factors of the probabilities of queries i.. at key j: 0 where dropped. */
static inline __attribute__((unused)) vf V(mask)(const struct attention_state *s, const struct attention_head *h,
						  int64_t i, int64_t j)
{
	float m[LANES];

	for (int l = 0; l < LANES; l++)
		m[l] = dropout_keeps(&s->draw, (uint64_t)(h->first + (i + l) * s->seq + j)) ? (float)s->draw.scale : 0;
	return vload(m, 0, false);
}

/* Scores of LANES queries become probabilities that are not yet divided by their sum; returns it, and the maximum. */
static inline __attribute__((unused)) vf V(softmax)(const struct attention_state *s, const struct attention_head *h,
						     int64_t i, float *p, vf *ret_max)
{
	vf max = vset(-__builtin_inff()), sum = { 0 };
	int64_t block = i / QUERIES * QUERIES, end = block + QUERIES;

	for (int64_t j = 0; j < end; j++) {
		vf x = vload(p, j * QUERIES, false);

		if (j > block)
			x = vblend(V(sees)(i, j), x, vset(-__builtin_inff()));
		max = vmax(x, max);
	}
	for (int64_t j = 0; j < end; j++) {
		vf x = vexp(vload(p, j * QUERIES, false) - max);

		if (j > block)
			x = (vf)((vi)x & V(sees)(i, j));
		sum += x;
		vstore(p, j * QUERIES, s->attr->dropout.p > 0 ? x * V(mask)(s, h, i, j) : x, false);
	}
	*ret_max = max;
	return sum;
}

static inline __attribute__((unused)) void V(forward_block)(const struct attention_state *s,
							    const struct attention_head *h, int64_t i)
{
	float sums[QUERIES], maxima[QUERIES];
	struct V(rows) r = V(queries)(s, h, i);

	V(load)(s, r, h->q);
	V(turn)(s, h->q, h->q_turned);
	V(scores)(s, h->k, h->q_turned, i, h->p);
	for (int64_t l = 0; l < QUERIES; l += LANES) {
		vf max, sum = V(softmax)(s, h, i + l, h->p + l, &max);

		vstore(sums, l, sum, false);
		vstore(maxima, l, max, false);
	}
	V(gather)(s, h->p, h->v, i, h->out);
	r = (struct V(rows)){ NULL, s->c, h->row * s->c + h->at, i, i + 1, 1 };
	for (int64_t l = 0; l < QUERIES && i + l < s->seq; l++, r.begin++, r.end++) {
		r.factor = 1 / sums[l];
		V(store)(s, s->y, r, h->out + l * s->width);
		s->lse[(h->row + i + l) * s->heads + h->number % s->heads] = maxima[l] + logf(sums[l]);
	}
}

static void V(attention_loop)(void *arg, int part, int parts)
{
	const struct attention_state *s = arg;
	struct cpu_range r = cpu_split(s->n_heads, 1, part, parts);

	for (int64_t number = r.begin; number < r.end; number++) {
		struct attention_head h = V(head_open)(s, part, number);

		for (int64_t i = 0; i < s->seq; i += QUERIES)
			V(forward_block)(s, &h, i);
	}
}

/* p becomes the probabilities after dropout, ds (holding dy.v) the gradients of the scores, for LANES queries. */
static inline __attribute__((unused)) void V(softmax_grad)(const struct attention_state *s,
							   const struct attention_head *h, int64_t i, vf inner)
{
	int64_t block = i / QUERIES * QUERIES;
	float *p = h->p + (i - block), *ds = h->ds + (i - block), lse[LANES] = { 0 };

	for (int64_t l = 0; l < LANES && i + l < s->seq; l++)
		lse[l] = s->lse_in[(h->row + i + l) * s->heads + h->number % s->heads];
	for (int64_t j = 0; j < block + QUERIES; j++) {
		vf x = vexp(vload(p, j * QUERIES, false) - vload(lse, 0, false)), d = vload(ds, j * QUERIES, false);
		vf kept;

		if (j > block)
			x = (vf)((vi)x & V(sees)(i, j));
		kept = x;
		if (s->attr->dropout.p > 0) {
			vf m = V(mask)(s, h, i, j);

			kept *= m;
			d *= m;
		}
		vstore(p, j * QUERIES, kept, false);
		vstore(ds, j * QUERIES, x * (d - inner), false);
	}
}

static inline __attribute__((unused)) void V(backward_block)(const struct attention_state *s,
							     const struct attention_head *h, int64_t i)
{
	struct V(rows) r = V(queries)(s, h, i), y = { s->y_in, s->c, h->row * s->c + h->at, i, i + QUERIES, 1 };
	float inner[QUERIES];

	V(load)(s, y, h->out);
	y.from = s->dy;
	V(load)(s, y, h->dy);
	for (int64_t l = 0; l < QUERIES; l++) {
		vf sum = { 0 };

		for (int64_t e = 0; e < s->width; e += LANES)
			sum += vload(h->out, l * s->width + e, false) * vload(h->dy, l * s->width + e, false);
		inner[l] = vsum(sum);
	}
	V(load)(s, r, h->q);
	V(turn)(s, h->q, h->q_turned);
	V(turn)(s, h->dy, h->dy_turned);
	V(scores)(s, h->k, h->q_turned, i, h->p);
	V(scores)(s, h->v, h->dy_turned, i, h->ds);
	for (int64_t l = 0; l < QUERIES; l += LANES)
		V(softmax_grad)(s, h, i + l, vload(inner, l, false));
	V(scatter)(s, h->p, h->dy, i, h->dv);
	V(scatter)(s, h->ds, h->q, i, h->dk);
	V(gather)(s, h->ds, h->k, i, h->out);
	V(store)(s, s->dqkv, r, h->out); /* scaled as q was */
}

static void V(attention_grad_loop)(void *arg, int part, int parts)
{
	const struct attention_state *s = arg;
	struct cpu_range r = cpu_split(s->n_heads, 1, part, parts);

	for (int64_t number = r.begin; number < r.end; number++) {
		struct attention_head h = V(head_open)(s, part, number);
		struct V(rows) to = { NULL, 3 * s->c, h.row * 3 * s->c + h.at + s->c, 0, s->seq, 1 };

		memset(h.dk, 0, (size_t)(2 * s->keys * s->width) * sizeof(float)); /* dv follows dk */
		for (int64_t i = 0; i < s->seq; i += QUERIES)
			V(backward_block)(s, &h, i);
		V(store)(s, s->dqkv, to, h.dk);
		to.at += s->c;
		V(store)(s, s->dqkv, to, h.dv);
	}
}

#endif
