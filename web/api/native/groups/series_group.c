/* series_group.c: aggregates the lines of a chart by group, see series_group.h. A run enters a bucket with the mean of
 * its finite values there. */
#include "web/api/native/groups/series_group.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/array.h"
#include "web/store/base/map.h"

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
	struct group_lines *pile = name ? map_put(p->known, name, strlen(name)) : NULL;

	if (!pile || pile->key)
		return pile;
	*pile = (struct group_lines){ .key = key, .group = group };
	pile->lines = arena_array(p->c->arena, p->g->sizes[group] + 1, sizeof(struct points_line *));
	pile->next = arena_array(p->c->arena, p->g->sizes[group] + 1, sizeof(size_t));
	return pile->lines && pile->next ? pile : NULL;
}

/* Assigns each line of the chart to its key and group. */
static bool assign_lines(struct group_lines_map *p, const struct points_chart *chart, const struct query_runs *runs)
{
	struct map *by_id = map_new(sizeof(size_t));
	bool ok = by_id != NULL;
	size_t i, *at;

	for (i = 0; ok && i < runs->count; i++) {
		at = map_put(by_id, runs->items[i].id, 32);
		ok = at != NULL;
		if (ok)
			*at = i;
	}
	for (i = 0; ok && i < chart->line_count; i++) {
		struct group_lines *pile;

		at = map_get(by_id, chart->lines[i].run, 32);
		if (!at)
			continue;
		pile = find_group_lines(p, chart->lines[i].key, p->g->of[*at]);
		ok = pile && pile->count < p->g->sizes[pile->group];
		if (ok) {
			pile->next[pile->count] = 0;
			pile->lines[pile->count++] = &chart->lines[i];
		}
	}
	map_free(by_id);
	return ok;
}

/* Values of the runs of a group in one bucket. */
struct bucket_values {
	double *means, min, max;
	size_t n;
	uint64_t nonfinite;
	bool any;
};

static void collect_bucket_values(struct group_lines *p, uint32_t place, struct bucket_values *t)
{
	size_t i;

	*t = (struct bucket_values){ .means = t->means, .min = INFINITY, .max = -INFINITY };
	for (i = 0; i < p->count; i++) {
		const struct points_line *l = p->lines[i];
		const struct points_bucket *b = &l->buckets[p->next[i]];

		if (p->next[i] == l->bucket_count || b->index != place)
			continue;
		p->next[i]++;
		t->any = true;
		t->nonfinite += b->nonfinite;
		if (b->count == b->nonfinite)
			continue;
		t->means[t->n++] = b->sum / (b->count - b->nonfinite);
		t->min = fmin(t->min, b->min.value);
		t->max = fmax(t->max, b->max.value);
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

static bool write_group_buckets(struct group_lines_map *p, struct js *j, struct group_lines *pile,
				const struct points_chart *chart, enum series_band band)
{
	struct bucket_values t = { .means = arena_array(p->c->arena, pile->count + 1, sizeof(double)) };
	uint32_t i;

	js_key(j, "buckets");
	js_open(j, '[');
	for (i = 0; t.means && i < chart->bucket_count; i++) {
		collect_bucket_values(pile, i, &t);
		if (t.any)
			write_group_bucket(j, i, &t, band);
	}
	js_close(j, ']');
	return t.means != NULL;
}

bool series_group_write(struct call *c, struct js *j, const struct series_group *s)
{
	struct group_lines_map p = { .known = map_new(sizeof(struct group_lines)), .g = s->groups, .c = c };
	bool ok = p.known && assign_lines(&p, s->chart, s->runs);
	size_t i;

	js_key(j, "groups");
	js_open(j, '[');
	for (i = 0; ok && i < map_count(p.known); i++) {
		struct group_lines *pile = map_at(p.known, i);

		js_open(j, '{');
		js_key_str(j, "key", pile->key);
		groups_write(j, s->groups, pile->group, s->runs);
		ok = write_group_buckets(&p, j, pile, s->chart, s->band);
		js_close(j, '}');
	}
	js_close(j, ']');
	map_free(p.known);
	if (!ok)
		call_fail(c, CALL_busy, NULL, "out of memory");
	return ok;
}
