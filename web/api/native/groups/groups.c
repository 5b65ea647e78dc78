/* SPDX-License-Identifier: Apache-2.0 */
/* groups.c: groups of runs, their statistics, and the lists and charts of groups, see groups.h. */
#include "web/api/native/groups/groups.h"

#include "tracker/base/array.h"
#include "web/store/base/map.h"

static const char *find_group_value(const struct query_run *r, const char *field)
{
	if (!strncmp(field, "params.", 7))
		return api_pair(r->params, r->param_count, field + 7);
	if (!strncmp(field, "tags.", 5))
		return api_pair(r->tags, r->tag_count, field + 5);
	return strcmp(field, "experiment") ? r->status : r->experiment;
}

static bool check_group_fields(struct call *c, const char *const *fields, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!(!strncmp(fields[i], "params.", 7) && fields[i][7]) &&
		    !(!strncmp(fields[i], "tags.", 5) && fields[i][5]) && strcmp(fields[i], "status") &&
		    strcmp(fields[i], "experiment"))
			return call_fail(c, CALL_bad_value, "group_by",
					 "group_by: expected params.NAME, tags.NAME, status or experiment"),
			       false;
	return true;
}

/* Assigns a run to its group. The key of a group is the list of its values, with a mark for a missing one. */
static void assign_group(struct call *c, struct map *known, struct groups *g, const struct query_run *r, size_t at)
{
	const char **values = arena_array(c->arena, g->field_count + 1, sizeof(*values));
	struct buf text;
	size_t i, *place;

	buf_init(&text, SIZE_MAX);
	for (i = 0; i < g->field_count; i++) {
		values[i] = find_group_value(r, g->fields[i]);
		buf_addc(&text, values[i] ? '=' : '-');
		buf_adds(&text, values[i] ? values[i] : "");
		buf_addc(&text, '\0');
	}
	place = map_put(known, text.data ? text.data : "", text.len);
	buf_done(&text);
	if (!*place) {
		*place = ++g->count;
		g->values[*place - 1] = values;
	}
	g->of[at] = *place - 1;
	g->sizes[*place - 1]++;
}

bool groups_make(struct call *c, const char *const *fields, size_t n, const struct query_runs *runs, struct groups *ret)
{
	struct groups g = { .fields = fields, .field_count = n };
	struct map *known;
	size_t i;

	if (!check_group_fields(c, fields, n))
		return false;
	known = map_new(sizeof(size_t));
	g.of = arena_array(c->arena, runs->count + 1, sizeof(*g.of));
	g.values = arena_array(c->arena, runs->count + 1, sizeof(*g.values));
	g.sizes = arena_array(c->arena, runs->count + 1, sizeof(*g.sizes));
	for (i = 0; i < runs->count; i++)
		assign_group(c, known, &g, &runs->items[i], i);
	map_free(known);
	*ret = g;
	return true;
}

/* Writes the members "group" ({"params.lr": "0.1"}, null for a missing value) and "runs" (ids) of an open object. */
static void groups_write(struct js *j, const struct groups *g, size_t group, const struct query_runs *runs)
{
	size_t i;

	js_key_open(j, "group", '{');
	for (i = 0; i < g->field_count; i++)
		js_key_str(j, g->fields[i], g->values[group][i]);
	js_close(j, '}');
	js_key_open(j, "runs", '[');
	for (i = 0; i < runs->count; i++)
		if (g->of[i] == group)
			js_str(j, runs->items[i].id);
	js_close(j, ']');
}

struct groups_sum {
	size_t n;
	double mean, std; /* sample standard deviation; NaN of one value; the mean of none is NaN */
};

/* Statistics of the finite values. */
static struct groups_sum groups_sum(const double *values, size_t n)
{
	struct groups_sum s = { 0, NAN, NAN };
	double sum = 0, squares = 0;
	size_t i;

	for (i = 0; i < n; i++)
		if (isfinite(values[i])) {
			sum += values[i];
			s.n++;
		}
	if (!s.n)
		return s;
	s.mean = sum / (double)s.n;
	for (i = 0; i < n; i++)
		if (isfinite(values[i]))
			squares += (values[i] - s.mean) * (values[i] - s.mean);
	if (s.n > 1)
		s.std = sqrt(squares / (double)(s.n - 1));
	return s;
}

/* P(|T| < t) for an integer number of degrees of freedom: finite sums 26.7.3 and 26.7.4 of Abramowitz and Stegun. */
static double student_t_within(double t, size_t freedom)
{
	double angle = atan(t / sqrt((double)freedom)), cosine = cos(angle), square = cosine * cosine;
	double term = freedom % 2 ? cosine : 1, sum = 0;
	size_t k;

	for (k = freedom % 2 ? 3 : 2; k <= freedom; k += 2) {
		sum += term;
		term *= square * (double)(k - 1) / (double)k;
	}
	return freedom % 2 ? (angle + sin(angle) * sum) * M_2_PI : sin(angle) * sum;
}

/* The 97.5 % quantile of Student's t with this number of degrees of freedom. */
static double groups_t975(size_t freedom)
{
	double low = 0, high = 13, middle;
	int i;

	if (!freedom)
		return 0;
	for (i = 0; i < 200 && low < (middle = (low + high) / 2) && middle < high; i++)
		if (student_t_within(middle, freedom) < 0.95)
			low = middle;
		else
			high = middle;
	return high;
}

/* --- lists of runs in groups ------------------------------------------------------------------------------------ */

static const char *const names[] = { "first", "last", "min", "max" };

enum { COLUMNS = 4 };

static double pick_summary_number(const struct query_metric *m, size_t column)
{
	const double all[COLUMNS] = { m->first, m->last, m->min, m->max };

	return all[column];
}

/* One metric of one group: the summaries of its runs. */
struct metric_summaries {
	const struct query_metric **list;
	size_t n;
};

static void collect_summaries(struct call *c, struct map *piles, const struct groups *g, size_t group,
			      const struct query_runs *runs)
{
	size_t i, k;

	for (i = 0; i < runs->count; i++) {
		const struct query_run *r = &runs->items[i];

		for (k = 0; g->of[i] == group && k < r->metric_count; k++) {
			const char *key = r->metrics[k].key;
			struct metric_summaries *p = map_put(piles, key, strlen(key));

			if (!p->list)
				p->list = arena_array(c->arena, g->sizes[group], sizeof(*p->list));
			p->list[p->n++] = &r->metrics[k];
		}
	}
}

static void write_summary_statistics(struct js *j, const struct metric_summaries *p, double *values)
{
	size_t column, i;

	js_open(j, '{');
	for (column = 0; column < COLUMNS; column++) {
		struct groups_sum s;

		for (i = 0; i < p->n; i++)
			values[i] = pick_summary_number(p->list[i], column);
		s = groups_sum(values, p->n);
		js_key_open(j, names[column], '{');
		js_key_int(j, "n", (int64_t)s.n);
		js_key_double(j, "mean", s.mean);
		js_key_double(j, "std", s.std);
		js_close(j, '}');
	}
	js_close(j, '}');
}

/* Writes one group with the statistics of each of its metrics. */
static void write_runs_group(struct call *c, struct js *j, const struct groups *g, size_t group,
			     const struct query_runs *runs)
{
	struct map *piles = map_new(sizeof(struct metric_summaries));
	double *values = arena_array(c->arena, g->sizes[group] + 1, sizeof(*values));
	size_t i, len;

	collect_summaries(c, piles, g, group, runs);
	js_open(j, '{');
	groups_write(j, g, group, runs);
	js_key_int(j, "n", (int64_t)g->sizes[group]);
	js_key_open(j, "metrics", '{');
	for (i = 0; i < map_count(piles); i++) {
		const char *key = map_key_at(piles, i, &len);

		js_key(j, arena_printf(c->arena, "%.*s", (int)len, key));
		write_summary_statistics(j, map_at(piles, i), values);
	}
	js_close(j, '}');
	js_close(j, '}');
	map_free(piles);
}

enum call_next runs_group_reply(struct call *c, const char *const *fields, size_t n, const struct query_runs *runs)
{
	struct js j = { .out = &c->out };
	struct groups g;
	size_t i;

	if (!groups_make(c, fields, n, runs, &g))
		return CALL_DONE;
	js_open(&j, '{');
	js_key_open(&j, "groups", '[');
	for (i = 0; i < g.count; i++)
		write_runs_group(c, &j, &g, i, runs);
	js_close(&j, ']');
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
	return CALL_DONE;
}

/* --- charts by group -------------------------------------------------------------------------------------------- */

/* Aggregates the lines of a chart by group. A run enters a bucket with the mean of its finite values there; between
 * its first and last bucket, one without points of the run takes its last value before. Otherwise the means of runs
 * that log at different steps would alternate between sets of runs. */

const char *const series_band_names[] = { "minmax", "std", "se", "t95", NULL };

/* One key of one group: the lines of its runs. */
struct group_lines {
	const char *key;
	size_t group;
	const struct points_line **lines;
	size_t *next; /* index of the next bucket of each line */
	size_t count;
};

struct group_lines_map {
	struct map *known;
	const struct groups *g;
	struct call *c;
};

static struct group_lines *find_group_lines(struct group_lines_map *p, const char *key, size_t group)
{
	const char *name = arena_printf(p->c->arena, "%zu %s", group, key);
	struct group_lines *pile = map_put(p->known, name, strlen(name));

	if (pile->key)
		return pile;
	*pile = (struct group_lines){ .key = key, .group = group };
	pile->lines = arena_array(p->c->arena, p->g->sizes[group] + 1, sizeof(struct points_line *));
	pile->next = arena_array(p->c->arena, p->g->sizes[group] + 1, sizeof(size_t));
	return pile;
}

/* Assigns each line of the chart to its key and group. */
static void assign_lines(struct group_lines_map *p, const struct points_chart *chart, const struct query_runs *runs)
{
	struct map *by_id = map_new(sizeof(size_t));
	size_t i, *at;

	for (i = 0; i < runs->count; i++)
		*(size_t *)map_put(by_id, runs->items[i].id, 32) = i;
	for (i = 0; i < chart->line_count; i++) {
		struct group_lines *pile;

		at = map_get(by_id, chart->lines[i].run, 32);
		if (!at)
			continue;
		pile = find_group_lines(p, chart->lines[i].key, p->g->of[*at]);
		if (pile->count < p->g->sizes[pile->group]) { /* one line of each run */
			pile->next[pile->count] = 0;
			pile->lines[pile->count++] = &chart->lines[i];
		}
	}
	map_free(by_id);
}

/* Values of the runs of a group in one bucket. */
struct bucket_values {
	double *means, min, max;
	size_t n;
	uint64_t nonfinite;
	bool any;
};

static void add_bucket_value(struct bucket_values *t, double mean, double min, double max)
{
	t->means[t->n++] = mean;
	t->min = fmin(t->min, min);
	t->max = fmax(t->max, max);
}

/* Collects the value of each run in the bucket, and moves past the buckets of the lines that are read. */
static void collect_bucket_values(struct group_lines *p, uint32_t place, struct bucket_values *t)
{
	size_t i;

	*t = (struct bucket_values){ .means = t->means, .min = INFINITY, .max = -INFINITY };
	for (i = 0; i < p->count; i++) {
		const struct points_line *l = p->lines[i];
		const struct points_bucket *b = &l->buckets[p->next[i]];

		if (p->next[i] == l->bucket_count)
			continue;
		if (b->index != place) {
			if (p->next[i] && isfinite(b[-1].last.value))
				add_bucket_value(t, b[-1].last.value, b[-1].last.value, b[-1].last.value);
			continue;
		}
		p->next[i]++;
		t->any = true;
		t->nonfinite += b->nonfinite;
		if (b->count > b->nonfinite)
			add_bucket_value(t, b->sum / (b->count - b->nonfinite), b->min.value, b->max.value);
	}
}

static void compute_band(const struct bucket_values *t, const struct groups_sum *s, enum series_band band, double *low,
			 double *high)
{
	double reach = s->n > 1 ? s->std : 0;

	if (band == SERIES_SE || band == SERIES_T95)
		reach /= sqrt((double)s->n);
	if (band == SERIES_T95)
		reach *= groups_t975(s->n - 1);
	*low = band == SERIES_MINMAX ? t->min : s->mean - reach;
	*high = band == SERIES_MINMAX ? t->max : s->mean + reach;
}

static void write_double_or_null(struct js *j, const char *key, double v, bool there)
{
	js_key(j, key);
	if (there)
		js_double(j, v);
	else
		js_null(j);
}

static void write_group_bucket(struct js *j, uint32_t place, struct bucket_values *t, enum series_band band)
{
	struct groups_sum s = groups_sum(t->means, t->n);
	double low = NAN, high = NAN;

	if (t->n)
		compute_band(t, &s, band, &low, &high);
	js_open(j, '{');
	js_key_int(j, "i", place);
	js_key_int(j, "n", (int64_t)t->n);
	write_double_or_null(j, "mean", s.mean, t->n);
	write_double_or_null(j, "median", median_of(t->means, t->n), t->n);
	write_double_or_null(j, "low", low, t->n);
	write_double_or_null(j, "high", high, t->n);
	if (t->nonfinite)
		js_key_int(j, "nonfinite", (int64_t)t->nonfinite);
	js_close(j, '}');
}

static void write_group_buckets(struct group_lines_map *p, struct js *j, struct group_lines *pile,
				const struct points_chart *chart, enum series_band band)
{
	struct bucket_values t = { .means = arena_array(p->c->arena, pile->count + 1, sizeof(double)) };
	uint32_t i;

	js_key_open(j, "buckets", '[');
	for (i = 0; i < chart->bucket_count; i++) {
		collect_bucket_values(pile, i, &t);
		if (t.any)
			write_group_bucket(j, i, &t, band);
	}
	js_close(j, ']');
}

void series_group_write(struct call *c, struct js *j, const struct series_group *s)
{
	struct group_lines_map p = { .known = map_new(sizeof(struct group_lines)), .g = s->groups, .c = c };
	size_t i;

	assign_lines(&p, s->chart, s->runs);
	js_key_open(j, "groups", '[');
	for (i = 0; i < map_count(p.known); i++) {
		struct group_lines *pile = map_at(p.known, i);

		js_open(j, '{');
		js_key_str(j, "key", pile->key);
		groups_write(j, s->groups, pile->group, s->runs);
		write_group_buckets(&p, j, pile, s->chart, s->band);
		js_close(j, '}');
	}
	js_close(j, ']');
	map_free(p.known);
}
