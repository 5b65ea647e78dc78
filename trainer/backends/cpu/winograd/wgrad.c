/* SPDX-License-Identifier: Apache-2.0 */
/* wgrad.c: dw = G^T [sum over tiles of (A dy A^T) . (B^T x B)] G: both activations are transformed, and the 36 products
 * are summed over tiles. Threads share tiles and then sums, block by block. If all sums are small, each thread has its
 * own groups of tiles and sums. These are added in the order of the groups, so the number of threads does not
 * matter. */
#include "trainer/backends/cpu/vec.h"
#include "trainer/backends/cpu/winograd/plan.h"

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")

#include "trainer/backends/cpu/winograd/block.h"

/* Of the first tile. */
static int64_t find_panel_offset(const struct matrix_layout *l, int64_t channel)
{
	int64_t in_panel = channel % l->panel;

	return (channel - in_panel) * l->rows + in_panel;
}

static struct matrix_layout laid_x(const struct winograd *w)
{
	return (struct matrix_layout){ &w->in, w->a, w->workspace, w->step_in, w->rows, PANEL };
}

static struct matrix_layout laid_dy(const struct winograd *w)
{
	return (struct matrix_layout){ &w->out, w->b, w->workspace + POINTS * w->step_in, w->step_out, w->rows, LANES };
}

/* Sums over tiles: 36 matrices of filters and channels, which start with a pair of ranges. */
struct winograd_sums {
	float *at;
	int64_t row, step; /* floats between filters, and between matrices */
	struct cpu_range k, c;
	bool add; /* add to the sums of the previous tiles */
};

static int64_t sums_floats(const struct winograd *w)
{
	return POINTS * w->in.lanes * w->out.lanes;
}

static struct winograd_sums sums_all(const struct winograd *w, float *at)
{
	return (struct winograd_sums){ .at = at,
				       .row = w->in.lanes,
				       .step = w->in.lanes * w->out.lanes,
				       .k = { 0, w->out.lanes },
				       .c = { 0, w->in.lanes } };
}

static float *sums_shared(const struct winograd *w)
{
	return w->workspace + w->shared_floats - sums_floats(w);
}

/* Transforms tiles of the current block. */
static void wgrad_tiles(const struct winograd *w, struct cpu_range r)
{
	const struct matrix_layout x = laid_x(w), dy = laid_dy(w);

	turn_tiles(TURN_INPUT, &x, r, w->begin);
	turn_tiles(TURN_GRADIENT, &dy, r, w->begin);
}

static void wgrad_turn(void *arg, int part, int parts)
{
	const struct winograd *w = arg;
	struct cpu_range r = cpu_split(w->count, 1, part, parts);

	wgrad_tiles(w, (struct cpu_range){ r.begin + w->begin, r.end + w->begin });
}

/* Computes the sums of one point and a panel of channels, the range c of s, for 16 adjacent filters. */
static void wgrad_panel(const struct winograd *w, const struct winograd_sums *s, int64_t point)
{
	const struct matrix_layout x = laid_x(w), dy = laid_dy(w);
	int64_t width = s->c.end - s->c.begin, rows = width >= 48 ? 4 : width == 32 ? 8 : 16;
	struct panel_product p = { .b = x.to + point * x.step + find_panel_offset(&x, s->c.begin),
				   .out = s->at + point * s->step,
				   .a_row = 1,
				   .a_next = LANES,
				   .b_next = width,
				   .out_row = s->row,
				   .depth = w->count,
				   .add = s->add };

	for (int64_t k = s->k.begin; k < s->k.end; k += rows, p.out += rows * s->row) {
		p.a = dy.to + point * dy.step + find_panel_offset(&dy, k);
		switch (width / LANES) {
		case 4:
			product_tile(&p, 4, 4);
			break;
		case 3:
			product_tile(&p, 4, 3);
			break;
		case 2:
			product_tile(&p, 8, 2);
			break;
		default:
			product_tile(&p, 16, 1);
		}
	}
}

/* Computes the gradient of filters r, whose sums s holds. */
static void wgrad_filters(const struct winograd *w, const struct winograd_sums *s, struct cpu_range r)
{
	int64_t channels = w->in.c;
	struct square from, to;

	square_whole(&from, NULL, PATCH * s->step, s->step);
	square_whole(&to, NULL, 3 * channels, channels);
	for (int64_t k = r.begin; k < min_int64(r.end, w->out.c); k++)
		for (int64_t c = s->c.begin; c < min_int64(s->c.end, channels); c += LANES) {
			from.at = (char *)(s->at + (k - s->k.begin) * s->row + c - s->c.begin);
			to.at = (char *)((float *)w->result + k * 9 * channels + c);
			square_lanes(&to, c, channels, true);
			turn_square(TURN_DW, &from, &to);
		}
}

static void wgrad_sum(void *arg, int part, int parts)
{
	const struct winograd *w = arg;
	struct winograd_sums s = sums_all(w, NULL);
	int64_t panels = (w->in.lanes + PANEL - 1) / PANEL;
	struct cpu_range r = cpu_split(POINTS * panels, 1, part, parts);

	s.add = w->begin > 0;
	for (int64_t i = r.begin; i < r.end; i++) {
		s.c.begin = i % panels * PANEL;
		s.c.end = min_int64(s.c.begin + PANEL, w->in.lanes);
		s.at = sums_shared(w) + s.c.begin;
		wgrad_panel(w, &s, i / panels);
	}
}

static void wgrad_finish(void *arg, int part, int parts)
{
	const struct winograd *w = arg;
	const struct winograd_sums s = sums_all(w, sums_shared(w));

	wgrad_filters(w, &s, cpu_split(w->out.c, 1, part, parts));
}

/* Computes the sums of a group of tiles, block by block, in the thread's own memory. */
static void apart_group(struct winograd *w, int64_t group, float *at)
{
	const struct cpu_range r = cpu_split(w->tiles, 1, (int)group, (int)w->groups);
	struct winograd_sums s = sums_all(w, at);

	for (w->begin = r.begin; w->begin < r.end; w->begin += w->count) {
		w->count = min_int64(w->block, r.end - w->begin);
		wgrad_tiles(w, (struct cpu_range){ w->begin, w->begin + w->count });
		s.add = w->begin > r.begin;
		for (int64_t point = 0; point < POINTS; point++)
			wgrad_panel(w, &s, point);
	}
}

static void floats_add(float *to, const float *from, int64_t n)
{
	for (int64_t i = 0; i < n; i += LANES)
		_mm512_storeu_ps(to + i, _mm512_add_ps(_mm512_loadu_ps(to + i), _mm512_loadu_ps(from + i)));
}

/* Thread 0 adds its groups to the sums of group 0 as it goes; no later group needs to wait for these. */
static void apart_run(void *arg, int part, int parts)
{
	const struct winograd *w = arg;
	const struct cpu_range r = cpu_split(w->groups, 1, part, parts);
	struct winograd own = *w;

	own.workspace += w->shared_floats + part * w->part_floats;
	for (int64_t group = r.begin; group < r.end; group++) {
		float *at = w->workspace + (part ? group : min_int64(group, 1)) * sums_floats(w);

		apart_group(&own, group, at);
		if (!part && group)
			floats_add(w->workspace, at, sums_floats(w));
	}
}

/* Adds the groups of the other threads in order; then each thread computes the gradient of its filters. */
static void apart_finish(void *arg, int part, int parts)
{
	const struct winograd *w = arg;
	const struct winograd_sums s = sums_all(w, w->workspace);
	const struct cpu_range first = cpu_split(w->groups, 1, 0, parts), r = cpu_split(w->out.c, 1, part, parts);

	for (int64_t group = first.end; group < w->groups; group++)
		for (int64_t point = 0; point < POINTS; point++) {
			float *to = s.at + point * s.step + r.begin * s.row;

			floats_add(to, to + group * sums_floats(w), (r.end - r.begin) * s.row);
		}
	wgrad_filters(w, &s, r);
}

/* Computes sums and gradients of 16 filters and a panel of channels at a time. */
static void wgrad_strips(void *arg, int part, int parts)
{
	const struct winograd *w = arg;
	int64_t strips = w->out.lanes / LANES, panels = (w->in.lanes + PANEL - 1) / PANEL;
	struct winograd_sums s = { .at = w->workspace + w->shared_floats + part * w->part_floats,
				   .row = PANEL,
				   .step = STRIP_FLOATS };
	const struct matrix_layout dy = laid_dy(w);
	struct cpu_range r = cpu_split(strips * panels, 1, part, parts);

	for (int64_t i = r.begin; i < r.end; i++) {
		s.c.begin = i / strips * PANEL;
		s.c.end = min_int64(s.c.begin + PANEL, w->in.lanes);
		s.k.begin = i % strips * LANES;
		s.k.end = s.k.begin + LANES;
		for (int64_t point = 0; point < POINTS; point++) {
			const float *next = dy.to + (point + 1) * dy.step + find_panel_offset(&dy, s.k.begin);

			for (int64_t j = 0; j < w->count; j++)
				__builtin_prefetch(next + j * LANES);
			wgrad_panel(w, &s, point);
		}
		wgrad_filters(w, &s, s.k);
	}
}

#pragma GCC pop_options

void winograd_wgrad(struct winograd *w)
{
	if (w->groups) {
		cpu_parallel(w->parts, apart_run, w);
		cpu_parallel(w->parts, apart_finish, w);
		return;
	}
	for (; w->begin < w->tiles; w->begin += w->count) {
		w->count = min_int64(w->block, w->tiles - w->begin);
		cpu_parallel(w->threads, wgrad_turn, w);
		cpu_parallel(w->threads, w->strips ? wgrad_strips : wgrad_sum, w);
	}
	if (!w->strips)
		cpu_parallel(w->threads, wgrad_finish, w);
}
#endif
