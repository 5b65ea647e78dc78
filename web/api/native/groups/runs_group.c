/* runs_group.c: replies with runs in groups, see runs_group.h. */
#include "web/api/native/groups/runs_group.h"

#include <math.h>
#include <string.h>

#include "web/store/base/map.h"

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

static bool collect_summaries(struct call *c, struct map *piles, const struct groups *g, size_t group,
			      const struct query_runs *runs)
{
	size_t i, k;

	for (i = 0; i < runs->count; i++) {
		const struct query_run *r = &runs->items[i];

		for (k = 0; g->of[i] == group && k < r->metric_count; k++) {
			const char *key = r->metrics[k].key;
			struct metric_summaries *p = map_put(piles, key, strlen(key));

			if (p && !p->list)
				p->list = arena_array(c->arena, g->sizes[group], sizeof(*p->list));
			if (!p || !p->list)
				return false;
			p->list[p->n++] = &r->metrics[k];
		}
	}
	return true;
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
		js_key(j, names[column]);
		js_open(j, '{');
		js_key_int(j, "n", (int64_t)s.n);
		js_key_double(j, "mean", s.mean);
		js_key_double(j, "std", s.std);
		js_close(j, '}');
	}
	js_close(j, '}');
}

/* Writes one group with the statistics of each of its metrics. */
static bool write_runs_group(struct call *c, struct js *j, const struct groups *g, size_t group,
			     const struct query_runs *runs)
{
	struct map *piles = map_new(sizeof(struct metric_summaries));
	double *values = arena_array(c->arena, g->sizes[group] + 1, sizeof(*values));
	bool ok = piles && values && collect_summaries(c, piles, g, group, runs);
	size_t i, len;

	js_open(j, '{');
	groups_write(j, g, group, runs);
	js_key_int(j, "n", (int64_t)g->sizes[group]);
	js_key(j, "metrics");
	js_open(j, '{');
	for (i = 0; ok && i < map_count(piles); i++) {
		const char *key = map_key_at(piles, i, &len);

		js_key(j, arena_printf(c->arena, "%.*s", (int)len, key));
		write_summary_statistics(j, map_at(piles, i), values);
	}
	js_close(j, '}');
	js_close(j, '}');
	map_free(piles);
	return ok;
}

enum call_next runs_group_reply(struct call *c, const char *const *fields, size_t n, const struct query_runs *runs)
{
	struct js j = { .out = &c->out };
	struct groups g;
	bool ok = true;
	size_t i;

	if (!groups_make(c, fields, n, runs, &g))
		return CALL_DONE;
	js_open(&j, '{');
	js_key(&j, "groups");
	js_open(&j, '[');
	for (i = 0; ok && i < g.count; i++)
		ok = write_runs_group(c, &j, &g, i, runs);
	js_close(&j, ']');
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
	return ok ? CALL_DONE : call_fail(c, CALL_busy, NULL, "out of memory");
}
