/* SPDX-License-Identifier: Apache-2.0 */
/* series_line.c: converts buckets to the polyline that a chart draws, quantized to small integers. Knows no request. */
#include "web/api/native/native_inside.h"

#include "tracker/base/array.h"

enum {
	LINE_BUCKET_POINTS = 5, /* first, min, max, last, the first non-finite one */
	LINE_SAMPLES = 512,
	LINE_LEVELS = 4096, /* distinguishable heights */
	LINE_DIGITS = 1000, /* relative resolution of a value */
	LINE_PLACES = 32,   /* subdivisions of a bucket's width */
};

#define LINE_INTEGER_MAX 4503599627370496.0 /* 2^52: differences stay exact */

struct polyline {
	struct points_at *points; /* NaN: a gap */
	uint32_t *per_bucket;
	size_t count;
	bool single, whole; /* one point per bucket; the buckets have no other points */
};

static bool is_same_point(const struct points_at *p, const struct points_at *q)
{
	return p->x == q->x && (p->value == q->value || (isnan(p->value) && isnan(q->value)));
}

static void insert_by_x(struct points_at *list, size_t n)
{
	for (; n && list[n].x < list[n - 1].x; n--) {
		struct points_at one = list[n];

		list[n] = list[n - 1];
		list[n - 1] = one;
	}
}

/* Lists the distinct points of a bucket in the order of x; returns their number. */
static size_t list_bucket_points(const struct points_bucket *b, struct points_at *to)
{
	const struct points_at bad = { b->first_nonfinite_x, NAN };
	struct points_at all[LINE_BUCKET_POINTS];
	size_t n = 0, kept = 0, i;

	if (b->count > b->nonfinite) {
		all[n++] = b->first;
		all[n++] = b->min.x <= b->max.x ? b->min : b->max;
		all[n++] = b->min.x <= b->max.x ? b->max : b->min;
		all[n++] = b->last;
	}
	if (b->nonfinite) {
		all[n] = bad;
		insert_by_x(all, n++);
	}
	for (i = 0; i < n; i++)
		if (!i || !is_same_point(&all[i], &all[i - 1]))
			to[kept++] = all[i];
	return kept;
}

static void make_polyline(struct polyline *p, const struct points_line *l, struct arena *a)
{
	size_t i;

	*p = (struct polyline){ .single = true, .whole = true };
	p->points = arena_array(a, l->bucket_count * LINE_BUCKET_POINTS + 1, sizeof(*p->points));
	p->per_bucket = arena_array(a, l->bucket_count + 1, sizeof(*p->per_bucket));
	for (i = 0; i < l->bucket_count; i++) {
		size_t n = list_bucket_points(&l->buckets[i], p->points + p->count);

		p->per_bucket[i] = (uint32_t)n;
		p->count += n;
		p->single = p->single && n == 1;
		p->whole = p->whole && n == l->buckets[i].count;
	}
}

/* The largest power of ten that is at most v. */
static double floor_power_of_ten(double v)
{
	return pow(10, floor(log10(v)));
}

static double choose_value_unit(const struct polyline *p)
{
	double v[LINE_SAMPLES], spread, small, unit;
	size_t n = 0, i, stride = p->count / LINE_SAMPLES + 1, zeros = 0;

	for (i = 0; i < p->count && n < LINE_SAMPLES; i += stride)
		if (isfinite(p->points[i].value))
			v[n++] = p->points[i].value;
	if (!n)
		return 1;
	median_sort(v, n);
	spread = v[n - 1 - n / 20] / LINE_LEVELS - v[n / 20] / LINE_LEVELS;
	for (i = 0; i < n; i++) {
		v[i] = fabs(v[i]);
		zeros += v[i] == 0;
	}
	median_sort(v, n);
	small = zeros < n ? v[zeros + (n - zeros) / 10] / LINE_DIGITS : 1;
	unit = floor_power_of_ten(spread > 0 && spread < small ? spread : small);
	return isnormal(unit) ? unit : 1;
}

static double choose_x_unit(const struct points_chart *chart, bool steps)
{
	double unit = chart->width > 0 ? floor_power_of_ten((points_edge(chart, 1) - chart->from) / LINE_PLACES) : 1e-6;

	return steps ? 1 : isnormal(unit) ? unit : 1e-6;
}

/* Writes a sequence of values as differences, see native_inside.h. */
struct delta_coder {
	struct js *j;
	double unit, before;
};

static void write_coded_value(struct delta_coder *c, double v)
{
	double at = round(v / c->unit);
	char text[JS_DOUBLE_MAX];

	if (!isfinite(v)) {
		js_null(c->j);
	} else if (fabs(at) > LINE_INTEGER_MAX ||
		   (v != 0 && fabs(at) < 100 && fabs(at * c->unit - v) > fabs(v) / LINE_DIGITS)) {
		js_print_double(text, v);
		js_str(c->j, text);
	} else {
		js_int(c->j, (int64_t)(at - c->before));
		c->before = at;
	}
}

static void write_bucket_means(struct js *j, const struct points_line *l, double unit)
{
	struct delta_coder c = { .j = j, .unit = unit };
	size_t i;

	js_key_open(j, "m", '[');
	for (i = 0; i < l->bucket_count; i++)
		if (l->buckets[i].count > l->buckets[i].nonfinite)
			write_coded_value(&c, l->buckets[i].sum / (l->buckets[i].count - l->buckets[i].nonfinite));
	js_close(j, ']');
	js_key_open(j, "w", '[');
	for (i = 0; i < l->bucket_count; i++)
		if (l->buckets[i].count > l->buckets[i].nonfinite)
			js_int(j, l->buckets[i].count - l->buckets[i].nonfinite);
	js_close(j, ']');
}

static void write_line_points(struct js *j, const struct polyline *p, double place, double unit)
{
	struct delta_coder x = { .j = j, .unit = place }, y = { .j = j, .unit = unit };
	size_t i;

	js_key_double(j, "xq", place);
	js_key_double(j, "q", unit);
	js_key_open(j, "x", '[');
	for (i = 0; i < p->count; i++)
		write_coded_value(&x, p->points[i].x);
	js_close(j, ']');
	js_key_open(j, "y", '[');
	for (i = 0; i < p->count; i++)
		write_coded_value(&y, p->points[i].value);
	js_close(j, ']');
}

void series_line_write(struct js *j, const struct points_line *l, const struct points_chart *chart, bool steps,
		       struct arena *a)
{
	struct polyline p;
	double unit;
	size_t i;

	make_polyline(&p, l, a);
	unit = choose_value_unit(&p);
	write_line_points(j, &p, choose_x_unit(chart, steps), unit);
	if (!p.single) {
		js_key_open(j, "k", '[');
		for (i = 0; i < l->bucket_count; i++)
			js_int(j, p.per_bucket[i]);
		js_close(j, ']');
	}
	if (!p.whole)
		write_bucket_means(j, l, unit);
}
