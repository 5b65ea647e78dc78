/* SPDX-License-Identifier: Apache-2.0 */
/* attention_bf16_cpu.c: attention on processors with AVX512_BF16. Their dot-product instruction adds two products per
 * lane: every product is formed from pairs of bf16 and summed in f32. Probabilities and their gradients are rounded to
 * bf16 before multiplication, like the operands of the other products.
 *
 * The sum of a product runs over pairs, so operands have one of three layouts: "rows" as in memory, pairs are
 * neighbours in a row; "pairs", two rows interleaved; "transposed", pairs of a row down a column. AMX tile registers
 * (amx.h) take rows on the left and pairs on the right. Where the processor has them they compute all products, and
 * sums over keys are computed transposed, from keys or values stored with channels as rows. */
#include <math.h>

#include "tracker/base/round.h"
#include "trainer/backends/cpu/amx.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/graph/plan.h"
#include "trainer/ops/attention/attention_cpu.h"

#define QUERIES ATTENTION_QUERIES
#define ROWS 8 /* rows of a register tile, which is two vectors wide */
#define WIDE ATTENTION_BF16_WIDE
#define AHEAD 16 /* rows */

/* One head's operands in the part's scratch, rows of `width` channels. Elements beyond seq and d are zero. */
struct bf16_head {
	uint16_t *k, *v;		       /* rows: [keys][width] */
	int32_t *k_pairs, *v_pairs;	       /* [keys / 2][width]; for tiles [width][keys / 2] */
	uint16_t *q, *dy;		       /* rows of a block: [QUERIES][width] */
	int32_t *q_pairs, *dy_pairs;	       /* [QUERIES / 2][width] */
	int32_t *q_transposed, *dy_transposed; /* [width / 2][QUERIES] */
	float *scores, *dp;		       /* [keys][QUERIES] */
	uint16_t *p, *ds;		       /* rows: [keys][QUERIES] */
	int32_t *pairs;			       /* pairs of p or of ds: [keys / 2][QUERIES] */
	float *out, *out_transposed;	       /* [QUERIES][width]; [width][QUERIES] for tiles */
	float *dk, *dv;			       /* [keys][width] */
	int64_t number, row, at; /* index over all heads; first row of the sequence; first channel of the head */
};

/* Bump allocator over scratch memory. Without a start it only measures. */
struct scratch_cursor {
	char *start;
	size_t used;
};

static void *alloc_from_scratch(struct scratch_cursor *from, int64_t bytes)
{
	size_t at = from->used;

	from->used += round_up_bytes((size_t)bytes, PLAN_ALIGN_BYTES);
	return from->start ? from->start + at : NULL;
}

/* Allocates every operand of a head. */
static void place_head_operands(const struct attention_state *s, struct bf16_head *h, struct scratch_cursor *scratch)
{
	int64_t all = s->keys * s->width, block = QUERIES * s->width, scores = s->keys * QUERIES;

	h->k = alloc_from_scratch(scratch, all * 2);
	h->v = alloc_from_scratch(scratch, all * 2);
	h->k_pairs = alloc_from_scratch(scratch, all * 2);
	h->v_pairs = alloc_from_scratch(scratch, all * 2);
	h->q = alloc_from_scratch(scratch, block * 2);
	h->dy = alloc_from_scratch(scratch, block * 2);
	h->q_pairs = alloc_from_scratch(scratch, block * 2);
	h->dy_pairs = alloc_from_scratch(scratch, block * 2);
	h->q_transposed = alloc_from_scratch(scratch, block * 2);
	h->dy_transposed = alloc_from_scratch(scratch, block * 2);
	h->scores = alloc_from_scratch(scratch, scores * 4);
	h->dp = alloc_from_scratch(scratch, scores * 4);
	h->p = alloc_from_scratch(scratch, scores * 2);
	h->ds = alloc_from_scratch(scratch, scores * 2);
	h->pairs = alloc_from_scratch(scratch, scores * 2);
	h->out = alloc_from_scratch(scratch, block * 4);
	h->out_transposed = alloc_from_scratch(scratch, s->tiles == CPU_TILES_NONE ? 0 : block * 4);
	h->dk = alloc_from_scratch(scratch, all * 4);
	h->dv = alloc_from_scratch(scratch, all * 4);
}

size_t attention_bf16_scratch_bytes(const struct attention_state *s)
{
	struct scratch_cursor measured = { 0 };
	struct bf16_head h;

	place_head_operands(s, &h, &measured);
	return measured.used;
}

#if defined(__x86_64__)
bool attention_bf16_takes(const struct kernel_env *env, const struct attention_state *s)
{
	return ((const struct cpu_module *)env->module)->isa == CPU_AVX512_BF16 && s->bf16 && !s->spans &&
	       s->attr->cap <= 0;
}

#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,prefer-vector-width=512")
#define V(name) name##_attention
#define CPU_HAS_AVX512
#define CPU_HAS_BF16
#include "trainer/backends/cpu/simd.h"

/* Interleaves the halves of x: (0, 16), (1, 17), … */
VEC_INLINE __m512i interleave_halves(__m512i x)
{
	const __m512i transpose_words = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8,
							 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);

	return _mm512_permutexvar_epi16(transpose_words, x);
}

/* Rows [i, i + n) of an operand, `stride` elements apart, up to the end of the sequence. */
struct bf16_rows {
	const void *from;
	int64_t stride, i, n;
};

/* Mask of the channels from e on that belong to the head. */
VEC_INLINE __mmask32 channels_from(const struct attention_state *s, int64_t e)
{
	return s->d - e >= WIDE ? ~(__mmask32)0 : ((__mmask32)1 << (s->d - e)) - 1;
}

/* Copies rows into scratch. A row is only one or two cache lines of each page, so the hardware prefetcher does not
 * follow; the loop prefetches. */
static void copy_rows(const struct attention_state *s, struct bf16_rows r, uint16_t *to)
{
	const uint16_t *from = (const uint16_t *)r.from + r.i * r.stride;

	for (int64_t i = 0; i < r.n; i++, from += r.stride, to += s->width)
		for (int64_t e = 0; e < s->width; e += WIDE) {
			__mmask32 there = r.i + i < s->seq ? channels_from(s, e) : 0;

			if (r.i + i + AHEAD < s->seq)
				__builtin_prefetch(from + AHEAD * r.stride + e);
			_mm512_storeu_si512(to + e, _mm512_maskz_loadu_epi16(there, from + e));
		}
}

/* Transposes m [rows][columns] of 32-bit words into to [columns][rows]. Both sizes are multiples of LANES. */
static void transpose_words(const void *m, int64_t rows, int64_t columns, void *to)
{
	for (int64_t i = 0; i < rows; i += LANES)
		for (int64_t j = 0; j < columns; j += LANES) {
			v16 part[LANES];

			for (int l = 0; l < LANES; l++)
				part[l] = vload(m, (i + l) * columns + j, false);
			vturn(part);
			for (int l = 0; l < LANES; l++)
				vstore(to, (j + l) * rows + i, part[l], false);
		}
}

static void pair_rows(const struct attention_state *s, const uint16_t *rows, int64_t n, int32_t *to)
{
	for (int64_t i = 0; i < n; i += 2, rows += 2 * s->width, to += s->width)
		for (int64_t e = 0; e < s->width; e += LANES) {
			__m512i a = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(rows + e)));
			__m256i b = _mm256_loadu_si256((const __m256i *)(rows + s->width + e));

			_mm512_storeu_si512(to + e, interleave_halves(_mm512_inserti64x4(a, b, 1)));
		}
}

static void transpose_query_rows(const struct attention_state *s, const uint16_t *rows, int32_t *to)
{
	transpose_words(rows, QUERIES, s->width / 2, to);
}

/* Lays out keys or values for sums over keys. `spare` has the same size. */
static void pair_keys(const struct attention_state *s, const uint16_t *rows, int32_t *to, void *spare)
{
	pair_rows(s, rows, s->keys, s->tiles == CPU_TILES_NONE ? to : spare);
	if (s->tiles != CPU_TILES_NONE)
		transpose_words(spare, s->keys / 2, s->width, to);
}

/* Stores rows of f32 sums times their factors as bf16 rows, `stride` apart. factors: NULL for 1. */
static void store_scaled_rows(const struct attention_state *s, const float *from, struct bf16_rows to,
			      const float *factors)
{
	for (int64_t i = 0; i < to.n && to.i + i < s->seq; i++, from += s->width)
		for (int64_t e = 0; e < s->d; e += LANES)
			vstore_any((void *)(uintptr_t)to.from, (to.i + i) * to.stride + e,
				   vload(from, e, false) * (factors ? factors[i] : 1), s->d - e, true);
}

/* c [ROWS][WIDE] (+)= the sum over pairs of a, broadcast, times b. Strides in bytes. */
struct bf16_product {
	const void *a, *b;
	int64_t a_row, a_pair, b_pair, pairs;
	float *c;
	int64_t c_row; /* in floats */
	bool add;
};

/* One register tile of a bf16_product. */
static void multiply_bf16_tile(const struct bf16_product *t)
{
	const char *a = t->a, *b = t->b;
	__m512 acc[ROWS][2];

#pragma GCC unroll 8
	for (int i = 0; i < ROWS; i++)
		acc[i][0] = acc[i][1] = _mm512_setzero_ps();
	for (int64_t k = 0; k < t->pairs; k++, a += t->a_pair, b += t->b_pair) {
		__m512bh low = (__m512bh)_mm512_loadu_si512(b), high = (__m512bh)_mm512_loadu_si512(b + 64);

#pragma GCC unroll 8
		for (int i = 0; i < ROWS; i++) {
			__m512i x = _mm512_set1_epi32(*(const int32_t *)(a + i * t->a_row));

			/* keep x in a register: memory operands in both uses would compete with the loads of b */
			__asm__("" : "+v"(x));
			acc[i][0] = _mm512_dpbf16_ps(acc[i][0], low, (__m512bh)x);
			acc[i][1] = _mm512_dpbf16_ps(acc[i][1], high, (__m512bh)x);
		}
	}
#pragma GCC unroll 8
	for (int i = 0; i < ROWS; i++)
		for (int v = 0; v < 2; v++) {
			float *c = t->c + i * t->c_row + v * LANES;

			vstore(c, 0, t->add ? (v16)acc[i][v] + vload(c, 0, false) : (v16)acc[i][v], false);
		}
}

static void compute_scores_amx(const struct attention_state *s, const uint16_t *rows, const int32_t *turned, int64_t i,
			       float *to)
{
	struct amx_product p = { .a_row = s->width * 2, .b = turned, .b_row = QUERIES * 4, .c_row = QUERIES * 4 };

	p.steps = s->width / WIDE;
	for (int64_t j = 0; j < i + QUERIES; j += WIDE) {
		p.a = rows + j * s->width;
		p.c = to + j * QUERIES;
		amx_multiply(s->tiles, &p);
	}
}

static void gather_over_keys_amx(const struct attention_state *s, const struct bf16_head *h, const int32_t *b,
				 int64_t i)
{
	struct amx_product p = { .a_row = s->keys * 2, .b = h->pairs, .b_row = QUERIES * 4, .c_row = QUERIES * 4 };

	p.steps = (i + QUERIES) / WIDE;
	for (int64_t e = 0; e < s->width; e += WIDE) {
		p.a = b + e * s->keys / 2;
		p.c = h->out_transposed + e * QUERIES;
		amx_multiply(s->tiles, &p);
	}
	transpose_words(h->out_transposed, s->width, QUERIES, h->out);
}

static void scatter_to_keys_amx(const struct attention_state *s, const uint16_t *m, const int32_t *b, int64_t i,
				float *to)
{
	struct amx_product p = { .a_row = QUERIES * 2, .steps = 1, .add = true };

	p.b_row = p.c_row = s->width * 4;
	for (int64_t j = 0; j < i + QUERIES; j += WIDE)
		for (int64_t e = 0; e < s->width; e += WIDE) {
			p.a = m + j * QUERIES;
			p.b = b + e;
			p.c = to + j * s->width + e;
			amx_multiply(s->tiles, &p);
		}
}

/* to[key][query] = rows of keys times the transposed block, for keys below i + QUERIES. */
static void compute_scores(const struct attention_state *s, const uint16_t *rows, const int32_t *turned, int64_t i,
			   float *to)
{
	if (s->tiles != CPU_TILES_NONE) {
		compute_scores_amx(s, rows, turned, i, to);
		return;
	}
	struct bf16_product t = {
		.a_row = s->width * 2, .a_pair = 4, .b = turned, .b_pair = QUERIES * 4, .c_row = QUERIES
	};

	t.pairs = (s->d + 1) / 2;
	for (int64_t j = 0; j < i + QUERIES; j += ROWS) {
		t.a = rows + j * s->width;
		t.c = to + j * QUERIES;
		multiply_bf16_tile(&t);
	}
}

/* out [QUERIES] = h->pairs of the keys that each query sees, times b. */
static void gather_over_keys(const struct attention_state *s, const struct bf16_head *h, const int32_t *b, int64_t i)
{
	if (s->tiles != CPU_TILES_NONE) {
		gather_over_keys_amx(s, h, b, i);
		return;
	}
	struct bf16_product t = { .a_row = 4, .a_pair = QUERIES * 4, .b_pair = s->width * 4, .c_row = s->width };

	for (int64_t q = 0; q < QUERIES; q += ROWS)
		for (int64_t e = 0; e < s->width; e += WIDE) {
			t.a = h->pairs + q;
			t.b = b + e;
			t.c = h->out + q * s->width + e;
			t.pairs = (i + q + ROWS) / 2;
			multiply_bf16_tile(&t);
		}
}

/* to[key] += rows m [key][query] times the block's pairs b, over the queries that see the key. */
static void scatter_to_keys(const struct attention_state *s, const uint16_t *m, const int32_t *b, int64_t i, float *to)
{
	if (s->tiles != CPU_TILES_NONE) {
		scatter_to_keys_amx(s, m, b, i, to);
		return;
	}
	struct bf16_product t = { .a_row = QUERIES * 2, .a_pair = 4, .b_pair = s->width * 4, .add = true };

	t.c_row = s->width;
	for (int64_t j = 0; j < i + QUERIES; j += ROWS) {
		int64_t blind = j > i ? (j - i) / 2 : 0;

		for (int64_t e = 0; e < s->width; e += WIDE) {
			t.a = m + j * QUERIES + 2 * blind;
			t.b = b + blind * s->width + e;
			t.c = to + j * s->width + e;
			t.pairs = QUERIES / 2 - blind;
			multiply_bf16_tile(&t);
		}
	}
}

/* Mask of the lanes whose query, i + lane, sees key j. */
VEC_INLINE __mmask16 mask_visible_queries(int64_t i, int64_t j)
{
	return j <= i ? 0xffff : j - i >= LANES ? 0 : (__mmask16)(0xffff << (j - i));
}

/* Dropout factors of queries i.. at key j: 0 where dropped. */
static v16 draw_dropout_factors(const struct attention_state *s, const struct bf16_head *h, int64_t i, int64_t j)
{
	uint64_t first = (uint64_t)(h->number * s->seq * s->seq + i * s->seq + j);
	float m[LANES];

	for (int l = 0; l < LANES; l++)
		m[l] = dropout_keeps(&s->draw, first + (uint64_t)(l * s->seq)) ? (float)s->draw.scale : 0;
	return vload(m, 0, false);
}

/* Stores rows of two keys as pairs. */
VEC_INLINE void store_pairs(int32_t *to, v16 even, v16 odd)
{
	_mm512_storeu_si512(to, interleave_halves((__m512i)_mm512_cvtne2ps_pbh((__m512)odd, (__m512)even)));
}

VEC_INLINE float score_scale(const struct attention_state *s)
{
	return 1 / sqrtf((float)s->d);
}

/* e^(scale (score - max)) for one key, 0 where it is masked. */
VEC_INLINE v16 probability(const float *score, v16 max, float scale, __mmask16 seen)
{
	return (v16)_mm512_maskz_mov_ps(seen, (__m512)vexp((vload(score, 0, false) - max) * scale));
}

/* Turns the scores of 16 queries (columns from l of the block that starts at query i) into pairs of probabilities, not
 * yet divided by their sum. Returns the sum and the largest score. */
static v16 compute_softmax(const struct attention_state *s, const struct bf16_head *h, int64_t i, int64_t l,
			   v16 *ret_max)
{
	v16 max = vset(-__builtin_inff()), sum = { 0 };
	const float *scores = h->scores + l;
	float scale = score_scale(s);
	int64_t end = i + QUERIES;

	for (int64_t j = 0; j < end; j++)
		max = (v16)_mm512_mask_max_ps((__m512)max, mask_visible_queries(i + l, j),
					      (__m512)vload(scores, j * QUERIES, false), (__m512)max);
	for (int64_t j = 0; j < end; j += 2) {
		v16 even = probability(scores + j * QUERIES, max, scale, mask_visible_queries(i + l, j));
		v16 odd = probability(scores + (j + 1) * QUERIES, max, scale, mask_visible_queries(i + l, j + 1));

		sum += even + odd;
		if (s->attr->dropout.p > 0) {
			even *= draw_dropout_factors(s, h, i + l, j);
			odd *= draw_dropout_factors(s, h, i + l, j + 1);
		}
		store_pairs(h->pairs + j / 2 * QUERIES + l, even, odd);
	}
	*ret_max = max;
	return sum;
}

static struct bf16_rows make_query_rows(const struct attention_state *s, const struct bf16_head *h, int64_t i)
{
	return (struct bf16_rows){ (const uint16_t *)s->qkv + h->row * 3 * s->c + h->at, 3 * s->c, i, QUERIES };
}

static struct bf16_rows make_result_rows(const struct attention_state *s, const struct bf16_head *h, const void *from,
					 int64_t i)
{
	return (struct bf16_rows){ (const uint16_t *)from + h->row * s->c + h->at, s->c, i, QUERIES };
}

static void run_forward_block(const struct attention_state *s, const struct bf16_head *h, int64_t i)
{
	float sums[QUERIES], maxima[QUERIES];

	copy_rows(s, make_query_rows(s, h, i), h->q);
	transpose_query_rows(s, h->q, h->q_transposed);
	compute_scores(s, h->k, h->q_transposed, i, h->scores);
	for (int64_t l = 0; l < QUERIES; l += LANES) {
		v16 max, sum = compute_softmax(s, h, i, l, &max);

		vstore(sums, l, 1 / sum, false);
		vstore(maxima, l, max, false);
	}
	gather_over_keys(s, h, h->v_pairs, i);
	store_scaled_rows(s, h->out, make_result_rows(s, h, s->y, i), sums);
	for (int64_t l = 0; l < QUERIES && i + l < s->seq; l++)
		s->lse[(h->row + i + l) * s->heads + h->number % s->heads] = maxima[l] * score_scale(s) - logf(sums[l]);
}

static struct bf16_head open_bf16_head(const struct attention_state *s, int part, int64_t number)
{
	struct bf16_head h = { .number = number, .row = number / s->heads * s->seq, .at = number % s->heads * s->d };
	struct scratch_cursor scratch = { .start = s->scratch + (size_t)part * s->scratch_bytes };
	struct bf16_rows r = make_query_rows(s, &h, 0);

	place_head_operands(s, &h, &scratch);
	r.n = s->keys;
	r.from = (const uint16_t *)r.from + s->c;
	copy_rows(s, r, h.k);
	r.from = (const uint16_t *)r.from + s->c;
	copy_rows(s, r, h.v);
	return h;
}

void attention_bf16_loop(void *state, int part, int parts)
{
	const struct attention_state *s = state;
	struct cpu_range r = cpu_split(s->n_heads, 1, part, parts);

	amx_begin(s->tiles);
	for (int64_t number = r.begin; number < r.end; number++) {
		struct bf16_head h = open_bf16_head(s, part, number);

		pair_keys(s, h.v, h.v_pairs, h.k_pairs);
		for (int64_t i = 0; i < s->seq; i += QUERIES)
			run_forward_block(s, &h, i);
	}
	amx_end(s->tiles);
}

/* For 16 queries at one key: probability after dropout, and gradient of the unscaled score. */
struct key_grads {
	v16 p, ds;
};

struct query_terms {
	v16 lse, inner; /* inner: dot product of dy and y */
	float scale;
};

VEC_INLINE struct key_grads compute_key_grad(const struct attention_state *s, const struct bf16_head *h,
					     const struct query_terms *q, int64_t i, int64_t j)
{
	int64_t at = j * QUERIES + i % QUERIES;
	v16 p = vexp(vload(h->scores, at, false) * q->scale - q->lse), dp = vload(h->dp, at, false), m;
	struct key_grads r;

	p = (v16)_mm512_maskz_mov_ps(mask_visible_queries(i, j), (__m512)p);
	r.p = p;
	if (s->attr->dropout.p > 0) {
		m = draw_dropout_factors(s, h, i, j);
		r.p *= m;
		dp *= m;
	}
	r.ds = p * (dp - q->inner) * q->scale;
	vstore(h->p, at, r.p, true);
	vstore(h->ds, at, r.ds, true);
	return r;
}

/* Turns scores and dy.v of the queries from i on into probabilities and gradients of the scores. */
static void softmax_grad(const struct attention_state *s, const struct bf16_head *h, int64_t i, v16 inner)
{
	int64_t l = i % QUERIES;
	float lse[LANES] = { 0 };
	struct query_terms q = { .inner = inner, .scale = score_scale(s) };

	for (int64_t k = 0; k < LANES && i + k < s->seq; k++)
		lse[k] = s->lse_in[(h->row + i + k) * s->heads + h->number % s->heads];
	q.lse = vload(lse, 0, false);
	for (int64_t j = 0; j < i - l + QUERIES; j += 2) {
		struct key_grads even = compute_key_grad(s, h, &q, i, j), odd = compute_key_grad(s, h, &q, i, j + 1);

		store_pairs(h->pairs + j / 2 * QUERIES + l, even.ds, odd.ds);
	}
}

/* Dot products of dy and y per query of the block; h->q temporarily holds y's rows. */
static void dot_dy_and_y(const struct attention_state *s, const struct bf16_head *h, float *inner)
{
	for (int64_t l = 0; l < QUERIES; l++) {
		v16 sum = { 0 };

		for (int64_t e = l * s->width; e < (l + 1) * s->width; e += LANES)
			sum += vload(h->q, e, true) * vload(h->dy, e, true);
		inner[l] = vsum(sum);
	}
}

static void run_backward_block(const struct attention_state *s, const struct bf16_head *h, int64_t i)
{
	float inner[QUERIES];

	copy_rows(s, make_result_rows(s, h, s->dy, i), h->dy);
	copy_rows(s, make_result_rows(s, h, s->y_in, i), h->q);
	dot_dy_and_y(s, h, inner);
	copy_rows(s, make_query_rows(s, h, i), h->q);
	transpose_query_rows(s, h->q, h->q_transposed);
	transpose_query_rows(s, h->dy, h->dy_transposed);
	pair_rows(s, h->q, QUERIES, h->q_pairs);
	pair_rows(s, h->dy, QUERIES, h->dy_pairs);
	compute_scores(s, h->k, h->q_transposed, i, h->scores);
	compute_scores(s, h->v, h->dy_transposed, i, h->dp);
	for (int64_t l = 0; l < QUERIES; l += LANES)
		softmax_grad(s, h, i + l, vload(inner, l, false));
	scatter_to_keys(s, h->p, h->dy_pairs, i, h->dv);
	scatter_to_keys(s, h->ds, h->q_pairs, i, h->dk);
	gather_over_keys(s, h, h->k_pairs, i);
}

void attention_bf16_grad_loop(void *state, int part, int parts)
{
	const struct attention_state *s = state;
	struct cpu_range r = cpu_split(s->n_heads, 1, part, parts);

	amx_begin(s->tiles);
	for (int64_t number = r.begin; number < r.end; number++) {
		struct bf16_head h = open_bf16_head(s, part, number);
		struct bf16_rows to = make_query_rows(s, &h, 0);

		to.from = (uint16_t *)s->dqkv + h.row * 3 * s->c + h.at;
		pair_keys(s, h.k, h.k_pairs, h.v_pairs);
		memset(h.dk, 0, (size_t)(s->keys * s->width) * sizeof(float));
		memset(h.dv, 0, (size_t)(s->keys * s->width) * sizeof(float));
		for (int64_t i = 0; i < s->seq; i += QUERIES) {
			run_backward_block(s, &h, i);
			to.i = i;
			store_scaled_rows(s, h.out, to, NULL);
		}
		to.i = 0;
		to.n = s->keys;
		to.from = (const uint16_t *)to.from + s->c;
		store_scaled_rows(s, h.dk, to, NULL);
		to.from = (const uint16_t *)to.from + s->c;
		store_scaled_rows(s, h.dv, to, NULL);
	}
	amx_end(s->tiles);
}
#pragma GCC pop_options
#else
bool attention_bf16_takes(const struct kernel_env *env, const struct attention_state *s)
{
	(void)env, (void)s;
	return false;
}

void attention_bf16_loop(void *state, int part, int parts)
{
	(void)state, (void)part, (void)parts;
}

void attention_bf16_grad_loop(void *state, int part, int parts)
{
	(void)state, (void)part, (void)parts;
}
#endif
