/* SPDX-License-Identifier: Apache-2.0 */
/* bf16_plan.c: computes the geometry of bf16_plan.h, and copies a source into cells. */
#include "trainer/backends/cpu/bf16_conv/bf16_plan.h"

#include <string.h>

#define LINE_ROW 16 /* pixels per row when one line is cut into rows */

/* ---- phases ---- */

static struct phase_axis plan_forward_axis(int64_t results, const struct dnn_conv_spec *s)
{
	return (struct phase_axis){ .results = results, .in_first = -s->pad, .taps = s->kernel, .tap_step = 1 };
}

/* The gradient of source element first + i * stride. It uses every stride-th element of the kernel, in reverse order,
 * so that the taps read the gradient of the results in order: in + j = (element + pad - tap) / stride. */
static struct phase_axis plan_back_axis(int64_t length, int64_t first, const struct dnn_conv_spec *s)
{
	const int64_t low = (first + s->pad) % s->stride;
	struct phase_axis a = { .results = (length - first + s->stride - 1) / s->stride,
				.out_first = first,
				.tap_step = -s->stride };

	a.taps = low < s->kernel ? (s->kernel - 1 - low) / s->stride + 1 : 0;
	a.tap_first = low + (a.taps - 1) * s->stride;
	a.in_first = (first + s->pad - low) / s->stride - (a.taps - 1);
	if (a.taps == 0)
		a.in_first = 0;
	return a;
}

static void plan_phases(struct conv_plan *p)
{
	const struct dnn_conv_spec *s = &p->s;

	if (s->pass != DNN_DGRAD) {
		p->phases = 1;
		p->phase[0].y = plan_forward_axis(p->out_h, s);
		p->phase[0].x = plan_forward_axis(p->out_w, s);
		return;
	}
	for (int64_t y = 0; y < s->stride && y < p->out_h; y++)
		for (int64_t x = 0; x < s->stride && x < p->out_w; x++) {
			p->phase[p->phases].y = plan_back_axis(p->out_h, y, s);
			p->phase[p->phases++].x = plan_back_axis(p->out_w, x, s);
		}
}

/* ---- cells ---- */

/* The range that all phases read along an axis, in source elements from the first one. */
struct axis_reach {
	int64_t first, extent, results;
};

static void widen_axis_reach(struct axis_reach *r, const struct phase_axis *a)
{
	r->first = min_int64(r->first, a->in_first);
	r->results = a->results > r->results ? a->results : r->results;
}

static void extend_axis_reach(struct axis_reach *r, const struct phase_axis *a)
{
	const int64_t extent = a->in_first - r->first + a->taps;

	r->extent = extent > r->extent ? extent : r->extent;
}

static void plan_reach(const struct conv_plan *p, struct axis_reach *y, struct axis_reach *x)
{
	for (int i = 0; i < p->phases; i++) {
		widen_axis_reach(y, &p->phase[i].y);
		widen_axis_reach(x, &p->phase[i].x);
	}
	for (int i = 0; i < p->phases; i++) {
		extend_axis_reach(y, &p->phase[i].y);
		extend_axis_reach(x, &p->phase[i].x);
	}
}

/* Returns the cells per row. The zeros to the left of a row also pad the right end of the previous row if they
 * suffice. */
static int64_t plan_pitch(const struct conv_plan *p, const struct axis_reach *x)
{
	const int64_t columns = x->results + (x->extent - 1) / p->in_step, inside = p->w - x->first;

	if (p->packed_rows)
		return x->results;
	if (p->in_step == 1 && columns > inside && columns - inside <= -x->first)
		return inside;
	return columns;
}

static void plan_cells(struct conv_plan *p, int64_t results_most)
{
	struct axis_reach y = { .extent = 1 }, x = { .extent = 1 };
	int64_t columns;

	plan_reach(p, &y, &x);
	p->top = y.first;
	p->left = x.first;
	columns = p->packed_rows ? x.results : x.results + (x.extent - 1) / p->in_step;
	p->pitch = plan_pitch(p, &x);
	p->planes_y = min_int64(p->in_step, y.extent);
	p->planes_x = p->packed_rows ? 1 : min_int64(p->in_step, x.extent);
	p->rows = results_most / p->pitch > 1 ? min_int64(results_most / p->pitch, y.results) : 1;
	p->bands = divide_up(y.results, p->rows);
	p->rows = divide_up(y.results, p->bands);
	p->units = p->n * p->bands;
	p->columns = x.results;
	p->results = (p->rows - 1) * p->pitch + x.results;
	p->plane_rows = p->rows + (y.extent - 1) / p->in_step;
	p->plane_cells = p->plane_rows * p->pitch + columns - p->pitch;
	p->unit_cells = p->planes_y * p->planes_x * p->plane_cells;
}

static void plan_steps(struct conv_plan *p)
{
	for (int i = 0; i < p->phases; i++) {
		struct conv_phase *f = &p->phase[i];

		f->taps = f->y.taps * (p->packed_rows && f->x.taps ? 1 : f->x.taps);
		f->first_step = p->steps;
		f->steps = f->taps * p->cell / BLOCK_TERMS;
		p->steps += f->steps;
	}
}

/* A 1x1 kernel with stride 1 treats the pixels of all images as one line, cut into short rows. */
static void plan_line(struct conv_plan *p)
{
	p->pixels = p->n * p->h * p->w;
	p->n = 1;
	p->h = p->out_h = divide_up(p->pixels, LINE_ROW);
	p->w = p->out_w = LINE_ROW;
}

void plan_conv(struct conv_plan *p, const struct dnn_conv_spec *s, int64_t results_most)
{
	const bool back = s->pass == DNN_DGRAD;

	*p = (struct conv_plan){ .s = *s,
				 .n = s->n,
				 .h = back ? s->p : s->h,
				 .w = back ? s->q : s->w,
				 .d = back ? s->k : s->c,
				 .out_h = back ? s->h : s->p,
				 .out_w = back ? s->w : s->q,
				 .e = back ? s->c : s->k,
				 .in_step = back ? 1 : s->stride,
				 .out_step = back ? s->stride : 1 };
	if (s->kernel == 1 && s->stride == 1)
		plan_line(p);
	p->packed_rows = p->d % BLOCK_TERMS != 0 && p->out_step == 1;
	p->terms = p->packed_rows ? s->kernel * p->d : p->d;
	p->cell = round_up(p->terms, BLOCK_TERMS);
	plan_phases(p);
	plan_cells(p, results_most);
	plan_steps(p);
}

size_t plan_weight_bytes(const struct conv_plan *p)
{
	return p->s.pass == DNN_WGRAD ? 0 : (size_t)(plan_panels(p->e) * p->steps * STEP_BYTES);
}

int64_t plan_tap_cell(const struct conv_plan *p, const struct conv_phase *f, int64_t t)
{
	const int64_t across = p->packed_rows ? 1 : f->x.taps;
	const int64_t y = t / across + f->y.in_first - p->top;
	const int64_t x = p->packed_rows ? 0 : t % across + f->x.in_first - p->left;
	const int64_t plane = y % p->in_step * p->planes_x + x % p->in_step;

	return plane * p->plane_cells + y / p->in_step * p->pitch + x / p->in_step;
}

struct result_row plan_result_row(const struct conv_plan *p, const struct conv_phase *f, int64_t unit, int64_t row)
{
	const int64_t i = unit % p->bands * p->rows + row, y = f->y.out_first + i * p->out_step;
	struct result_row r = { .pixel = (unit / p->bands * p->out_h + y) * p->out_w + f->x.out_first };

	if (i < f->y.results)
		r.results = p->pixels ? min_int64(f->x.results, p->pixels - r.pixel) : f->x.results;
	return r;
}

/* ---- what is read ---- */

/* Converts rows, counted over all images, to elements, `width` per row; rows outside of the images are cut off. */
static struct cpu_range find_rows(const struct conv_plan *p, struct cpu_range rows, int64_t height, int64_t width)
{
	const int64_t all = p->pixels ? p->pixels * width / p->w : p->n * height * width;
	struct cpu_range r = { rows.begin * width, rows.end * width };

	r.begin = r.begin < 0 ? 0 : min_int64(r.begin, all);
	r.end = r.end < r.begin ? r.begin : min_int64(r.end, all);
	return r;
}

struct cpu_range plan_source_range(const struct conv_plan *p, struct cpu_range units)
{
	const int64_t last = units.end - 1, step = p->rows * p->in_step;
	const struct cpu_range rows = {
		units.begin / p->bands * p->h + units.begin % p->bands * step + p->top,
		last / p->bands * p->h + min_int64(last % p->bands * step + p->top + p->plane_rows * p->in_step, p->h),
	};

	return find_rows(p, rows, p->h, p->w * p->d);
}

struct cpu_range plan_result_range(const struct conv_plan *p, struct cpu_range units)
{
	const int64_t last = units.end - 1;
	const struct cpu_range rows = {
		units.begin / p->bands * p->out_h + units.begin % p->bands * p->rows,
		last / p->bands * p->out_h + min_int64((last % p->bands + 1) * p->rows, p->out_h),
	};

	return find_rows(p, rows, p->out_h, p->out_w * p->e);
}

struct plan_ahead plan_look_ahead(const void *elements, struct cpu_range range)
{
	const char *from = elements;

	return (struct plan_ahead){ from + range.begin * 2, from + range.end * 2 };
}

/* ---- the copy ---- */

/* Fills one row of cells, starting at source column `first`; row: w pixels of d channels, or NULL for zeros. */
struct cell_row {
	const uint16_t *row;
	int64_t first, w;
};

/* Copies source columns [at, at + span) of d channels, as far as they exist, then fills the cell with zeros. */
static void fill_cell(const struct conv_plan *p, const struct cell_row *r, int64_t at, int64_t span, uint16_t *cell)
{
	const int64_t begin = at < 0 ? 0 : at, end = min_int64(at + span, r->w);
	const int64_t before = min_int64(begin - at, span) * p->d, n = end > begin ? (end - begin) * p->d : 0;

	memset(cell, 0, (size_t)before * sizeof(*cell));
	if (n > 0)
		memcpy(cell + before, r->row + begin * p->d, (size_t)n * sizeof(*cell));
	memset(cell + before + n, 0, (size_t)(p->cell - before - n) * sizeof(*cell));
}

/* Fills the cells of one row; runs of whole pixels are copied at once. */
static void fill_cell_row(const struct conv_plan *p, const struct cell_row *r, int64_t cells, uint16_t *to)
{
	const int64_t span = p->packed_rows ? p->s.kernel : 1, whole = p->in_step == 1 && span * p->d == p->cell;
	int64_t at = r->first;

	if (!r->row) {
		memset(to, 0, (size_t)(cells * p->cell) * sizeof(*to));
		return;
	}
	for (int64_t i = 0; i < cells; at += p->in_step) {
		int64_t n = whole && at >= 0 ? min_int64(cells - i, r->w - at) : 0;

		if (n > 0) {
			memcpy(to, r->row + at * p->d, (size_t)(n * p->cell) * sizeof(*to));
			at += n - 1;
		} else {
			n = 1;
			fill_cell(p, r, at, span, to);
		}
		to += n * p->cell;
		i += n;
	}
}

/* Returns source row y of an image; NULL outside of it. */
static struct cell_row find_source_row(const struct conv_plan *p, const uint16_t *source, int64_t image, int64_t y)
{
	const int64_t pixel = (image * p->h + y) * p->w;
	const int64_t w = p->pixels ? min_int64(p->w, p->pixels - pixel) : p->w;

	if (y < 0 || y >= p->h || w <= 0)
		return (struct cell_row){ 0 };
	return (struct cell_row){ .row = source + pixel * p->d, .w = w };
}

static void fill_plane(const struct conv_plan *p, const uint16_t *source, int64_t unit, int64_t plane, uint16_t *to)
{
	const int64_t image = unit / p->bands, first = unit % p->bands * p->rows * p->in_step + p->top;
	const int64_t overhang = p->plane_cells - p->plane_rows * p->pitch;

	for (int64_t i = 0; i < p->plane_rows; i++, to += p->pitch * p->cell) {
		const int64_t y = first + i * p->in_step + plane / p->planes_x;
		struct cell_row r = find_source_row(p, source, image, y);

		r.first = p->left + plane % p->planes_x;
		fill_cell_row(p, &r, p->pitch, to);
	}
	memset(to, 0, (size_t)(overhang * p->cell) * sizeof(*to));
}

void plan_fill_cells(const struct conv_plan *p, const uint16_t *source, int64_t unit, uint16_t *cells)
{
	for (int64_t i = 0; i < p->planes_y * p->planes_x; i++, cells += p->plane_cells * p->cell)
		fill_plane(p, source, unit, i, cells);
}
