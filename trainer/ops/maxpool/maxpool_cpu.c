/* SPDX-License-Identifier: Apache-2.0 */
/* maxpool_cpu.c: maximum over windows with its index. The gradient is gathered per input pixel, so that no two threads
 * write the same element. */
#ifndef CPU_PASS
#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/maxpool/maxpool.h"

struct maxpool_state {
	cpu_part_fn *loop;
	int kernel, stride, pad, parts;
	int64_t n, h, w, p, q, c;
	bool bf16;
	const void *in;
	void *out;
	const uint8_t *winner;
	uint8_t *index;
};

#define CPU_BODY "trainer/ops/maxpool/maxpool_cpu.c"
#include "trainer/backends/cpu/each.h"

static int new_maxpool_state(const struct kernel_env *env, const struct node *n, struct maxpool_state **ret,
			     struct err *err)
{
	const struct maxpool_attr *a = n->attr;
	struct maxpool_state *s;
	bool bf16;
	int rc = cpu_one_type(n, (struct cpu_operands){ 1, 1 }, &bf16, err);

	if (rc)
		return rc;
	s = mem_zalloc(sizeof(*s));
	s->kernel = a->kernel;
	s->stride = a->stride;
	s->pad = a->pad;
	s->bf16 = bf16;
	s->parts = cpu_parts(env, shape_count(&n->in[0]->shape));
	*ret = s;
	return 0;
}

static void set_maxpool_sizes(struct maxpool_state *s, const struct shape *x, const struct shape *y)
{
	s->n = x->dim[0], s->h = x->dim[1], s->w = x->dim[2], s->c = x->dim[3];
	s->p = y->dim[1], s->q = y->dim[2];
}

static int prepare_maxpool_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct maxpool_state *s;
	int rc = new_maxpool_state(env, n, &s, err);

	if (rc)
		return rc;
	set_maxpool_sizes(s, &n->in[0]->shape, &n->out[0]->shape);
	s->loop = CPU_PICK(env, maxpool_loop);
	*ret_state = s;
	return 0;
}

static void run_maxpool_cpu(void *state, const struct kernel_args *args)
{
	struct maxpool_state s = *(const struct maxpool_state *)state;

	s.in = args->in[0];
	s.out = args->out[0];
	s.index = args->out[1];
	cpu_parallel(s.parts, s.loop, &s);
}

static int prepare_maxpool_grad_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct maxpool_state *s;
	int rc = new_maxpool_state(env, n, &s, err);

	if (rc)
		return rc;
	set_maxpool_sizes(s, &n->out[0]->shape, &n->in[0]->shape);
	s->loop = CPU_PICK(env, maxpool_grad_loop);
	*ret_state = s;
	return 0;
}

static void run_maxpool_grad_cpu(void *state, const struct kernel_args *args)
{
	struct maxpool_state s = *(const struct maxpool_state *)state;

	s.in = args->in[0];
	s.winner = args->in[1];
	s.out = args->out[0];
	cpu_parallel(s.parts, s.loop, &s);
}

extern const struct kernel maxpool_cpu, maxpool_grad_cpu;
const struct kernel maxpool_cpu = { .prepare = prepare_maxpool_cpu,
				    .run = run_maxpool_cpu,
				    .release = cpu_state_release };
const struct kernel maxpool_grad_cpu = { .prepare = prepare_maxpool_grad_cpu,
					 .run = run_maxpool_grad_cpu,
					 .release = cpu_state_release };

#else

/* Loads the indices of `lanes` channels. Full vectors are loaded directly, since a copy of variable length is a
 * function call. */
VEC_INLINE vb V(maxpool_bytes)(const uint8_t *p, int64_t lanes)
{
	vb bytes = { 0 };

	if (lanes == LANES)
		return *(const vb_u *)p;
	memcpy(&bytes, p, (size_t)lanes);
	return bytes;
}

/* One output pixel: the window is clipped to the image, and the search starts with its first tap. */
VEC_INLINE void V(maxpool_pixel)(const struct maxpool_state *s, int64_t n, int64_t p, int64_t q, const bool bf)
{
	int64_t h0 = p * s->stride - s->pad, w0 = q * s->stride - s->pad, o = ((n * s->p + p) * s->q + q) * s->c;
	int r0 = h0 < 0 ? (int)-h0 : 0, r1 = s->h - h0 < s->kernel ? (int)(s->h - h0) : s->kernel;
	int t0 = w0 < 0 ? (int)-w0 : 0, t1 = s->w - w0 < s->kernel ? (int)(s->w - w0) : s->kernel;

	for (int64_t c = 0; c < s->c; c += LANES) {
		int64_t lanes = s->c - c < LANES ? s->c - c : LANES, first = ((n * s->h + h0) * s->w + w0) * s->c + c;
		vf best = vload_any(s->in, first + (r0 * s->w + t0) * s->c, lanes, bf);
		vi where = (vi){ 0 } + (r0 * s->kernel + t0);

		for (int r = r0; r < r1; r++)
			for (int t = t0; t < t1; t++)
				vbest(&best, &where, vload_any(s->in, first + (r * s->w + t) * s->c, lanes, bf),
				      r * s->kernel + t);
		vstore_any(s->out, o + c, best, lanes, bf);
		vb bytes = __builtin_convertvector(where, vb);
		if (lanes == LANES)
			*(vb_u *)(s->index + o + c) = bytes;
		else
			memcpy(s->index + o + c, &bytes, (size_t)lanes);
	}
}

static void V(maxpool_loop)(void *arg, int part, int parts)
{
	const struct maxpool_state *s = arg;
	struct cpu_range r = cpu_split(s->n * s->p, 1, part, parts);

	for (int64_t i = r.begin; i < r.end; i++)
		for (int64_t q = 0; q < s->q; q++)
			s->bf16 ? V(maxpool_pixel)(s, i / s->p, i % s->p, q, true)
				: V(maxpool_pixel)(s, i / s->p, i % s->p, q, false);
}

/* Range of windows that cover input position x. */
static inline __attribute__((unused)) struct cpu_range V(maxpool_windows)(const struct maxpool_state *s, int64_t x,
									  int64_t windows)
{
	int64_t at = x + s->pad;
	struct cpu_range r = { at < s->kernel ? 0 : (at - s->kernel) / s->stride + 1, at / s->stride + 1 };

	r.end = r.end < windows ? r.end : windows;
	return r;
}

/* The windows that cover one input pixel: the first one's output element, and the input's position in that window. */
struct V(maxpool_cover) {
	int64_t at, p_step, q_step; /* strides in elements */
	int p, q, place, place_p, place_q;
};

VEC_INLINE void V(maxpool_grad_lanes)(const struct maxpool_state *s, const struct V(maxpool_cover) * w, int64_t to,
				      int64_t lanes, const bool bf)
{
	vf sum = { 0 };

	for (int p = 0; p < w->p; p++)
		for (int q = 0; q < w->q; q++) {
			int64_t o = w->at + p * w->p_step + q * w->q_step;
			vb winner = V(maxpool_bytes)(s->winner + o, lanes);

			sum = vadd_where(sum, winner, w->place - p * w->place_p - q * w->place_q,
					 vload_any(s->in, o, lanes, bf));
		}
	vstore_any(s->out, to, sum, lanes, bf);
}

/* Gradient of input row h of sample n. */
VEC_INLINE void V(maxpool_grad_row)(const struct maxpool_state *s, int64_t n, int64_t h, const bool bf)
{
	struct cpu_range ps = V(maxpool_windows)(s, h, s->p);
	struct V(maxpool_cover) cover = { .p_step = s->q * s->c, .q_step = s->c, .place_q = s->stride };

	cover.p = (int)(ps.end - ps.begin);
	cover.place_p = s->stride * s->kernel;
	for (int64_t w = 0; w < s->w; w++) {
		struct cpu_range qs = V(maxpool_windows)(s, w, s->q);
		int64_t to = ((n * s->h + h) * s->w + w) * s->c, c = 0;

		cover.q = (int)(qs.end - qs.begin);
		cover.at = ((n * s->p + ps.begin) * s->q + qs.begin) * s->c;
		cover.place =
			(int)((h + s->pad - ps.begin * s->stride) * s->kernel + w + s->pad - qs.begin * s->stride);
		for (; c + LANES <= s->c; c += LANES, cover.at += LANES)
			V(maxpool_grad_lanes)(s, &cover, to + c, LANES, bf);
		if (c < s->c)
			V(maxpool_grad_lanes)(s, &cover, to + c, s->c - c, bf);
	}
}

static void V(maxpool_grad_loop)(void *arg, int part, int parts)
{
	const struct maxpool_state *s = arg;
	struct cpu_range r = cpu_split(s->n * s->h, 1, part, parts);

	for (int64_t i = r.begin; i < r.end; i++)
		s->bf16 ? V(maxpool_grad_row)(s, i / s->h, i % s->h, true)
			: V(maxpool_grad_row)(s, i / s->h, i % s->h, false);
}

#endif
