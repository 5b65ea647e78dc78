/* series_line.c: buckets to the polyline that a chart draws, in small integers. Knows no request. */
#include "web/api/native/series_line.h"

#include <math.h>

#include "tracker/base/median.h"

enum {
	BUCKET_POINTS = 5,     /* first, min, max, last, the first that is not finite */
	SAMPLES = 512,
	LEVELS = 4096,         /* heights that can be told apart */
	DIGITS = 1000,         /* of a value by itself */
	PLACES = 32,           /* of a bucket's width */
};

#define INTEGER_MAX 4503599627370496.0 /* 2^52: differences stay exact */

struct line {
	struct points_at *points; /* NaN: a gap */
	uint32_t *per_bucket;
	size_t count;
	bool single, whole; /* one point a bucket; no points but these */
};

static bool same(const struct points_at *p, const struct points_at *q)
{
	return p->x == q->x && (p->value == q->value || (isnan(p->value) && isnan(q->value)));
}

static void swap_back(struct points_at *list, size_t n)
{
	for (; n && list[n].x < list[n - 1].x; n--) {
		struct points_at one = list[n];

		list[n] = list[n - 1];
		list[n - 1] = one;
	}
}

/* The distinct points of a bucket in the order of x. */
static size_t bucket_points(const struct points_bucket *b, struct points_at *to)
{
	const struct points_at bad = { b->first_nonfinite_x, NAN };
	struct points_at all[BUCKET_POINTS];
	size_t n = 0, kept = 0, i;

	if (b->count > b->nonfinite) {
		all[n++] = b->first;
		all[n++] = b->min.x <= b->max.x ? b->min : b->max;
		all[n++] = b->min.x <= b->max.x ? b->max : b->min;
		all[n++] = b->last;
	}
	if (b->nonfinite) {
		all[n] = bad;
		swap_back(all, n++);
	}
	for (i = 0; i < n; i++)
		if (!i || !same(&all[i], &all[i - 1]))
			to[kept++] = all[i];
	return kept;
}

static bool line_make(struct line *p, const struct points_line *l, struct arena *a)
{
	size_t i;

	*p = (struct line){ .single = true, .whole = true };
	p->points = arena_array(a, l->bucket_count * BUCKET_POINTS + 1, sizeof(*p->points));
	p->per_bucket = arena_array(a, l->bucket_count + 1, sizeof(*p->per_bucket));
	if (!p->points || !p->per_bucket)
		return false;
	for (i = 0; i < l->bucket_count; i++) {
		size_t n = bucket_points(&l->buckets[i], p->points + p->count);

		p->per_bucket[i] = (uint32_t)n;
		p->count += n;
		p->single = p->single && n == 1;
		p->whole = p->whole && n == l->buckets[i].count;
	}
	return true;
}

/* The power of ten at or below v. */
static double ten_below(double v)
{
	return pow(10, floor(log10(v)));
}

static double value_unit(const struct line *p)
{
	double v[SAMPLES], spread, small, unit;
	size_t n = 0, i, stride = p->count / SAMPLES + 1, zeros = 0;

	for (i = 0; i < p->count && n < SAMPLES; i += stride)
		if (isfinite(p->points[i].value))
			v[n++] = p->points[i].value;
	if (!n)
		return 1;
	median_sort(v, n);
	spread = v[n - 1 - n / 20] / LEVELS - v[n / 20] / LEVELS;
	for (i = 0; i < n; i++) {
		v[i] = fabs(v[i]);
		zeros += v[i] == 0;
	}
	median_sort(v, n);
	small = zeros < n ? v[zeros + (n - zeros) / 10] / DIGITS : 1;
	unit = ten_below(spread > 0 && spread < small ? spread : small);
	return isnormal(unit) ? unit : 1;
}

static double place_unit(const struct points_chart *chart, bool steps)
{
	double unit = chart->width > 0 ? ten_below((points_edge(chart, 1) - chart->from) / PLACES) : 1e-6;

	return steps ? 1 : isnormal(unit) ? unit : 1e-6;
}

/* Values one after the other, as the header says. */
struct coder {
	struct js *j;
	double unit, before;
};

static void code(struct coder *c, double v)
{
	double at = round(v / c->unit);
	char text[JS_DOUBLE_MAX];

	if (!isfinite(v)) {
		js_null(c->j);
	} else if (fabs(at) > INTEGER_MAX || (v != 0 && fabs(at) < 100 && fabs(at * c->unit - v) > fabs(v) / DIGITS)) {
		js_print_double(text, v);
		js_str(c->j, text);
	} else {
		js_int(c->j, (int64_t)(at - c->before));
		c->before = at;
	}
}

static void write_means(struct js *j, const struct points_line *l, double unit)
{
	struct coder c = { .j = j, .unit = unit };
	size_t i;

	js_key(j, "m");
	js_open(j, '[');
	for (i = 0; i < l->bucket_count; i++)
		if (l->buckets[i].count > l->buckets[i].nonfinite)
			code(&c, l->buckets[i].sum / (l->buckets[i].count - l->buckets[i].nonfinite));
	js_close(j, ']');
	js_key(j, "w");
	js_open(j, '[');
	for (i = 0; i < l->bucket_count; i++)
		if (l->buckets[i].count > l->buckets[i].nonfinite)
			js_int(j, l->buckets[i].count - l->buckets[i].nonfinite);
	js_close(j, ']');
}

static void write_points(struct js *j, const struct line *p, double place, double unit)
{
	struct coder x = { .j = j, .unit = place }, y = { .j = j, .unit = unit };
	size_t i;

	js_key_double(j, "xq", place);
	js_key_double(j, "q", unit);
	js_key(j, "x");
	js_open(j, '[');
	for (i = 0; i < p->count; i++)
		code(&x, p->points[i].x);
	js_close(j, ']');
	js_key(j, "y");
	js_open(j, '[');
	for (i = 0; i < p->count; i++)
		code(&y, p->points[i].value);
	js_close(j, ']');
}

bool series_line_write(struct js *j, const struct points_line *l, const struct points_chart *chart, bool steps,
		       struct arena *a)
{
	struct line p;
	double unit;
	size_t i;

	if (!line_make(&p, l, a))
		return false;
	unit = value_unit(&p);
	write_points(j, &p, place_unit(chart, steps), unit);
	if (!p.single) {
		js_key(j, "k");
		js_open(j, '[');
		for (i = 0; i < l->bucket_count; i++)
			js_int(j, p.per_bucket[i]);
		js_close(j, ']');
	}
	if (!p.whole)
		write_means(j, l, unit);
	return true;
}
