/* attention_bf16_cpu.c: attention on processors with AVX512_BF16, whose dot-product instruction adds two products per
 * lane: every product is formed from pairs of bf16 and summed in f32. Probabilities and their gradients are rounded to
 * bf16 before they are multiplied, as the operands of the other products are.
 *
 * The sum of a product runs over pairs, so operands lie in one of three forms: "rows" as in memory, whose pairs are
 * neighbours in a row; "pairs", two rows in turn; "turned", pairs of a row down a column. Tile registers (amx.h) take
 * rows on the left and pairs on the right; where there are some they form all products, and what gathers over keys is
 * formed turned, from keys or values whose channels are rows. */
#include <math.h>
#include <string.h>

#include "trainer/backends/cpu/amx.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/attention/attention_cpu.h"

#define QUERIES ATTENTION_QUERIES
#define ROWS 8 /* of a tile of sums in registers, by two vectors */
#define WIDE ATTENTION_BF16_WIDE
#define AHEAD 16 /* rows */

/* One head's operands in the part's scratch, rows of `width` channels; what lies beyond seq and d is zero. */
struct head {
	uint16_t *k, *v;	       /* rows: [keys][width] */
	int32_t *k_pairs, *v_pairs;    /* [keys / 2][width]; for tiles [width][keys / 2] */
	uint16_t *q, *dy;	       /* rows of a block: [QUERIES][width] */
	int32_t *q_pairs, *dy_pairs;   /* [QUERIES / 2][width] */
	int32_t *q_turned, *dy_turned; /* [width / 2][QUERIES] */
	float *scores, *dp;	       /* [keys][QUERIES] */
	uint16_t *p, *ds;	       /* rows: [keys][QUERIES] */
	int32_t *pairs;		       /* of p, or of ds: [keys / 2][QUERIES] */
	float *out, *out_turned;       /* [QUERIES][width]; [width][QUERIES] for tiles */
	float *dk, *dv;		       /* [keys][width] */
	int64_t number, row, at;       /* of all heads; first row of the sequence, first channel of the head */
};

/* Scratch that is given out piece by piece; without a start it is only measured. */
struct scratch {
	char *start;
	size_t used;
};

static void *take(struct scratch *from, int64_t bytes)
{
	size_t at = from->used;

	from->used += (size_t)(bytes + 63) / 64 * 64;
	return from->start ? from->start + at : NULL;
}

/* Gives every operand its place. */
static void head_place(const struct attention_state *s, struct head *h, struct scratch *scratch)
{
	int64_t all = s->keys * s->width, block = QUERIES * s->width, scores = s->keys * QUERIES;

	h->k = take(scratch, all * 2);
	h->v = take(scratch, all * 2);
	h->k_pairs = take(scratch, all * 2);
	h->v_pairs = take(scratch, all * 2);
	h->q = take(scratch, block * 2);
	h->dy = take(scratch, block * 2);
	h->q_pairs = take(scratch, block * 2);
	h->dy_pairs = take(scratch, block * 2);
	h->q_turned = take(scratch, block * 2);
	h->dy_turned = take(scratch, block * 2);
	h->scores = take(scratch, scores * 4);
	h->dp = take(scratch, scores * 4);
	h->p = take(scratch, scores * 2);
	h->ds = take(scratch, scores * 2);
	h->pairs = take(scratch, scores * 2);
	h->out = take(scratch, block * 4);
	h->out_turned = take(scratch, s->tiles == CPU_TILES_NONE ? 0 : block * 4);
	h->dk = take(scratch, all * 4);
	h->dv = take(scratch, all * 4);
}

size_t attention_bf16_scratch_bytes(const struct attention_state *s)
{
	struct scratch measured = { 0 };
	struct head h;

	head_place(s, &h, &measured);
	return measured.used;
}

#if defined(__x86_64__)
bool attention_bf16_takes(const struct kernel_env *env, const struct attention_state *s)
{
	return ((const struct cpu_module *)env->module)->isa == CPU_AVX512_BF16 && s->bf16;
}

#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,prefer-vector-width=512")
#define V(name) name##_attention
#define CPU_HAS_AVX512
#define CPU_HAS_BF16
#include "trainer/backends/cpu/simd.h"

/* Lanes of the halves of x in turn: (0, 16), (1, 17), … */
VEC_INLINE __m512i in_turn(__m512i x)
{
	const __m512i turn = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22,
					      6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);

	return _mm512_permutexvar_epi16(turn, x);
}

/* Rows [i, i + n) of an operand, `stride` elements apart, as far as the sequence goes. */
struct rows {
	const void *from;
	int64_t stride, i, n;
};

/* Which of the channels from e on the head has. */
VEC_INLINE __mmask32 channels_from(const struct attention_state *s, int64_t e)
{
	return s->d - e >= WIDE ? ~(__mmask32)0 : ((__mmask32)1 << (s->d - e)) - 1;
}

/* A row is a line or two of each page: too far apart to be foreseen, so what follows is asked for here. */
static void rows_copy(const struct attention_state *s, struct rows r, uint16_t *to)
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

/* m [rows][columns] of 32 bits, multiples of LANES, becomes to [columns][rows]. */
static void turn(const void *m, int64_t rows, int64_t columns, void *to)
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

static void rows_pair(const struct attention_state *s, const uint16_t *rows, int64_t n, int32_t *to)
{
	for (int64_t i = 0; i < n; i += 2, rows += 2 * s->width, to += s->width)
		for (int64_t e = 0; e < s->width; e += LANES) {
			__m512i a = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(rows + e)));
			__m256i b = _mm256_loadu_si256((const __m256i *)(rows + s->width + e));

			_mm512_storeu_si512(to + e, in_turn(_mm512_inserti64x4(a, b, 1)));
		}
}

static void rows_turn(const struct attention_state *s, const uint16_t *rows, int32_t *to)
{
	turn(rows, QUERIES, s->width / 2, to);
}

/* Keys or values as what gathers over them reads them; `spare` holds as much. */
static void keys_pair(const struct attention_state *s, const uint16_t *rows, int32_t *to, void *spare)
{
	rows_pair(s, rows, s->keys, s->tiles == CPU_TILES_NONE ? to : spare);
	if (s->tiles != CPU_TILES_NONE)
		turn(spare, s->keys / 2, s->width, to);
}

/* Rows of f32 sums, times their factors, to bf16 rows `stride` apart. factors: NULL for 1. */
static void rows_store(const struct attention_state *s, const float *from, struct rows to, const float *factors)
{
	for (int64_t i = 0; i < to.n && to.i + i < s->seq; i++, from += s->width)
		for (int64_t e = 0; e < s->d; e += LANES)
			vstore_any((void *)(uintptr_t)to.from, (to.i + i) * to.stride + e,
				   vload(from, e, false) * (factors ? factors[i] : 1), s->d - e, true);
}

/* c [ROWS][WIDE] (+)= the sum over pairs of a's, broadcast, times b's. Strides in bytes. */
struct product {
	const void *a, *b;
	int64_t a_row, a_pair, b_pair, pairs;
	float *c;
	int64_t c_row; /* in floats */
	bool add;
};

static void tile(const struct product *t)
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

			/* in a register: read by each of its uses it would take the loads that b needs */
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

static void scores_in_tiles(const struct attention_state *s, const uint16_t *rows, const int32_t *turned, int64_t i,
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

static void gather_in_tiles(const struct attention_state *s, const struct head *h, const int32_t *b, int64_t i)
{
	struct amx_product p = { .a_row = s->keys * 2, .b = h->pairs, .b_row = QUERIES * 4, .c_row = QUERIES * 4 };

	p.steps = (i + QUERIES) / WIDE;
	for (int64_t e = 0; e < s->width; e += WIDE) {
		p.a = b + e * s->keys / 2;
		p.c = h->out_turned + e * QUERIES;
		amx_multiply(s->tiles, &p);
	}
	turn(h->out_turned, s->width, QUERIES, h->out);
}

static void scatter_in_tiles(const struct attention_state *s, const uint16_t *m, const int32_t *b, int64_t i, float *to)
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

/* to[key][query] = rows of keys times the turned block, for keys below i + QUERIES. */
static void scores_of(const struct attention_state *s, const uint16_t *rows, const int32_t *turned, int64_t i,
		      float *to)
{
	if (s->tiles != CPU_TILES_NONE) {
		scores_in_tiles(s, rows, turned, i, to);
		return;
	}
	struct product t = { .a_row = s->width * 2, .a_pair = 4, .b = turned, .b_pair = QUERIES * 4, .c_row = QUERIES };

	t.pairs = (s->d + 1) / 2;
	for (int64_t j = 0; j < i + QUERIES; j += ROWS) {
		t.a = rows + j * s->width;
		t.c = to + j * QUERIES;
		tile(&t);
	}
}

/* out [QUERIES] = the pairs of keys that each query sees times those of b. */
static void gather(const struct attention_state *s, const struct head *h, const int32_t *b, int64_t i)
{
	if (s->tiles != CPU_TILES_NONE) {
		gather_in_tiles(s, h, b, i);
		return;
	}
	struct product t = { .a_row = 4, .a_pair = QUERIES * 4, .b_pair = s->width * 4, .c_row = s->width };

	for (int64_t q = 0; q < QUERIES; q += ROWS)
		for (int64_t e = 0; e < s->width; e += WIDE) {
			t.a = h->pairs + q;
			t.b = b + e;
			t.c = h->out + q * s->width + e;
			t.pairs = (i + q + ROWS) / 2;
			tile(&t);
		}
}

/* to[key] += rows m [key][query] times the block's pairs b, of the queries that see the key. */
static void scatter(const struct attention_state *s, const uint16_t *m, const int32_t *b, int64_t i, float *to)
{
	if (s->tiles != CPU_TILES_NONE) {
		scatter_in_tiles(s, m, b, i, to);
		return;
	}
	struct product t = { .a_row = QUERIES * 2, .a_pair = 4, .b_pair = s->width * 4, .add = true };

	t.c_row = s->width;
	for (int64_t j = 0; j < i + QUERIES; j += ROWS) {
		int64_t blind = j > i ? (j - i) / 2 : 0;

		for (int64_t e = 0; e < s->width; e += WIDE) {
			t.a = m + j * QUERIES + 2 * blind;
			t.b = b + blind * s->width + e;
			t.c = to + j * s->width + e;
			t.pairs = QUERIES / 2 - blind;
			tile(&t);
		}
	}
}

/* Lanes whose query, i + lane, may look at key j. */
VEC_INLINE __mmask16 sees(int64_t i, int64_t j)
{
	return j <= i ? 0xffff : j - i >= LANES ? 0 : (__mmask16)(0xffff << (j - i));
}

/* Factors of the probabilities of queries i.. at key j: 0 where dropped. */
static v16 kept(const struct attention_state *s, const struct head *h, int64_t i, int64_t j)
{
	uint64_t first = (uint64_t)(h->number * s->seq * s->seq + i * s->seq + j);
	float m[LANES];

	for (int l = 0; l < LANES; l++)
		m[l] = dropout_keeps(&s->draw, first + (uint64_t)(l * s->seq)) ? (float)s->draw.scale : 0;
	return vload(m, 0, false);
}

/* Rows of two keys, as pairs. */
VEC_INLINE void store_pairs(int32_t *to, v16 even, v16 odd)
{
	_mm512_storeu_si512(to, in_turn((__m512i)_mm512_cvtne2ps_pbh((__m512)odd, (__m512)even)));
}

VEC_INLINE float score_scale(const struct attention_state *s)
{
	return 1 / sqrtf((float)s->d);
}

/* e^(scale (score - max)) of one key, 0 where it is not seen. */
VEC_INLINE v16 probability(const float *score, v16 max, float scale, __mmask16 seen)
{
	return (v16)_mm512_maskz_mov_ps(seen, (__m512)vexp((vload(score, 0, false) - max) * scale));
}

/* Scores of 16 queries, column `l` of the block from query i on, become pairs of probabilities that are not yet divided
 * by their sum; returns it, and the largest score. */
static v16 softmax(const struct attention_state *s, const struct head *h, int64_t i, int64_t l, v16 *ret_max)
{
	v16 max = vset(-__builtin_inff()), sum = { 0 };
	const float *scores = h->scores + l;
	float scale = score_scale(s);
	int64_t end = i + QUERIES;

	for (int64_t j = 0; j < end; j++)
		max = (v16)_mm512_mask_max_ps((__m512)max, sees(i + l, j), (__m512)vload(scores, j * QUERIES, false),
					      (__m512)max);
	for (int64_t j = 0; j < end; j += 2) {
		v16 even = probability(scores + j * QUERIES, max, scale, sees(i + l, j));
		v16 odd = probability(scores + (j + 1) * QUERIES, max, scale, sees(i + l, j + 1));

		sum += even + odd;
		if (s->attr->dropout.p > 0) {
			even *= kept(s, h, i + l, j);
			odd *= kept(s, h, i + l, j + 1);
		}
		store_pairs(h->pairs + j / 2 * QUERIES + l, even, odd);
	}
	*ret_max = max;
	return sum;
}

static struct rows query_rows(const struct attention_state *s, const struct head *h, int64_t i)
{
	return (struct rows){ (const uint16_t *)s->qkv + h->row * 3 * s->c + h->at, 3 * s->c, i, QUERIES };
}

static struct rows result_rows(const struct attention_state *s, const struct head *h, const void *from, int64_t i)
{
	return (struct rows){ (const uint16_t *)from + h->row * s->c + h->at, s->c, i, QUERIES };
}

static void forward_block(const struct attention_state *s, const struct head *h, int64_t i)
{
	float sums[QUERIES], maxima[QUERIES];

	rows_copy(s, query_rows(s, h, i), h->q);
	rows_turn(s, h->q, h->q_turned);
	scores_of(s, h->k, h->q_turned, i, h->scores);
	for (int64_t l = 0; l < QUERIES; l += LANES) {
		v16 max, sum = softmax(s, h, i, l, &max);

		vstore(sums, l, 1 / sum, false);
		vstore(maxima, l, max, false);
	}
	gather(s, h, h->v_pairs, i);
	rows_store(s, h->out, result_rows(s, h, s->y, i), sums);
	for (int64_t l = 0; l < QUERIES && i + l < s->seq; l++)
		s->lse[(h->row + i + l) * s->heads + h->number % s->heads] = maxima[l] * score_scale(s) - logf(sums[l]);
}

static struct head head_open(const struct attention_state *s, int part, int64_t number)
{
	struct head h = { .number = number, .row = number / s->heads * s->seq, .at = number % s->heads * s->d };
	struct scratch scratch = { .start = s->scratch + (size_t)part * s->scratch_bytes };
	struct rows r = query_rows(s, &h, 0);

	head_place(s, &h, &scratch);
	r.n = s->keys;
	r.from = (const uint16_t *)r.from + s->c;
	rows_copy(s, r, h.k);
	r.from = (const uint16_t *)r.from + s->c;
	rows_copy(s, r, h.v);
	return h;
}

void attention_bf16_loop(void *state, int part, int parts)
{
	const struct attention_state *s = state;
	struct cpu_range r = cpu_split(s->n_heads, 1, part, parts);

	amx_begin(s->tiles);
	for (int64_t number = r.begin; number < r.end; number++) {
		struct head h = head_open(s, part, number);

		keys_pair(s, h.v, h.v_pairs, h.k_pairs);
		for (int64_t i = 0; i < s->seq; i += QUERIES)
			forward_block(s, &h, i);
	}
	amx_end(s->tiles);
}

/* Of 16 queries at one key: the probability after dropout, and the gradient of the score before its scale. */
struct of_key {
	v16 p, ds;
};

struct of_queries {
	v16 lse, inner; /* inner: dy times y */
	float scale;
};

VEC_INLINE struct of_key key_grad(const struct attention_state *s, const struct head *h, const struct of_queries *q,
				  int64_t i, int64_t j)
{
	int64_t at = j * QUERIES + i % QUERIES;
	v16 p = vexp(vload(h->scores, at, false) * q->scale - q->lse), dp = vload(h->dp, at, false), m;
	struct of_key r;

	p = (v16)_mm512_maskz_mov_ps(sees(i, j), (__m512)p);
	r.p = p;
	if (s->attr->dropout.p > 0) {
		m = kept(s, h, i, j);
		r.p *= m;
		dp *= m;
	}
	r.ds = p * (dp - q->inner) * q->scale;
	vstore(h->p, at, r.p, true);
	vstore(h->ds, at, r.ds, true);
	return r;
}

/* Scores and dy times v of the queries from i on become probabilities and the gradients of the scores. */
static void softmax_grad(const struct attention_state *s, const struct head *h, int64_t i, v16 inner)
{
	int64_t l = i % QUERIES;
	float lse[LANES] = { 0 };
	struct of_queries q = { .inner = inner, .scale = score_scale(s) };

	for (int64_t k = 0; k < LANES && i + k < s->seq; k++)
		lse[k] = s->lse_in[(h->row + i + k) * s->heads + h->number % s->heads];
	q.lse = vload(lse, 0, false);
	for (int64_t j = 0; j < i - l + QUERIES; j += 2) {
		struct of_key even = key_grad(s, h, &q, i, j), odd = key_grad(s, h, &q, i, j + 1);

		store_pairs(h->pairs + j / 2 * QUERIES + l, even.ds, odd.ds);
	}
}

/* dy times y of the block's queries; y's rows are in q's place. */
static void inner_of(const struct attention_state *s, const struct head *h, float *inner)
{
	for (int64_t l = 0; l < QUERIES; l++) {
		v16 sum = { 0 };

		for (int64_t e = l * s->width; e < (l + 1) * s->width; e += LANES)
			sum += vload(h->q, e, true) * vload(h->dy, e, true);
		inner[l] = vsum(sum);
	}
}

static void backward_block(const struct attention_state *s, const struct head *h, int64_t i)
{
	float inner[QUERIES];

	rows_copy(s, result_rows(s, h, s->dy, i), h->dy);
	rows_copy(s, result_rows(s, h, s->y_in, i), h->q);
	inner_of(s, h, inner);
	rows_copy(s, query_rows(s, h, i), h->q);
	rows_turn(s, h->q, h->q_turned);
	rows_turn(s, h->dy, h->dy_turned);
	rows_pair(s, h->q, QUERIES, h->q_pairs);
	rows_pair(s, h->dy, QUERIES, h->dy_pairs);
	scores_of(s, h->k, h->q_turned, i, h->scores);
	scores_of(s, h->v, h->dy_turned, i, h->dp);
	for (int64_t l = 0; l < QUERIES; l += LANES)
		softmax_grad(s, h, i + l, vload(inner, l, false));
	scatter(s, h->p, h->dy_pairs, i, h->dv);
	scatter(s, h->ds, h->q_pairs, i, h->dk);
	gather(s, h, h->k_pairs, i);
}

void attention_bf16_grad_loop(void *state, int part, int parts)
{
	const struct attention_state *s = state;
	struct cpu_range r = cpu_split(s->n_heads, 1, part, parts);

	amx_begin(s->tiles);
	for (int64_t number = r.begin; number < r.end; number++) {
		struct head h = head_open(s, part, number);
		struct rows to = query_rows(s, &h, 0);

		to.from = (uint16_t *)s->dqkv + h.row * 3 * s->c + h.at;
		keys_pair(s, h.k, h.k_pairs, h.v_pairs);
		memset(h.dk, 0, (size_t)(s->keys * s->width) * sizeof(float));
		memset(h.dv, 0, (size_t)(s->keys * s->width) * sizeof(float));
		for (int64_t i = 0; i < s->seq; i += QUERIES) {
			backward_block(s, &h, i);
			to.i = i;
			rows_store(s, h.out, to, NULL);
		}
		to.i = 0;
		to.n = s->keys;
		to.from = (const uint16_t *)to.from + s->c;
		rows_store(s, h.dk, to, NULL);
		to.from = (const uint16_t *)to.from + s->c;
		rows_store(s, h.dv, to, NULL);
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
