/* SPDX-License-Identifier: Apache-2.0 */
/* api_compare.c: /compare: the params in which runs differ, and the metrics of all. */

#include <stdlib.h>
#include <string.h>

#include "tracker/insight/goal.h"
#include "web/api/native/native_inside.h"
#include "web/store/base/map.h"

enum { COMPARE_RUNS_MAX = 1000 };

static int compare_key_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorts the names and drops duplicates; returns the number left. */
static size_t sort_unique_keys(const char **names, size_t n)
{
	size_t i, kept = 0;

	qsort(names, n, sizeof(*names), compare_key_texts);
	for (i = 0; i < n; i++)
		if (!kept || strcmp(names[kept - 1], names[i]))
			names[kept++] = names[i];
	return kept;
}

static bool is_param_different(const struct query_runs *runs, const char *key)
{
	const char *first = api_param(&runs->items[0], key), *other;
	size_t i;

	for (i = 1; i < runs->count; i++) {
		other = api_param(&runs->items[i], key);
		if (!first != !other || (first && strcmp(first, other)))
			return true;
	}
	return false;
}

static void write_compared_heads(struct js *j, const struct query_runs *runs)
{
	size_t i;

	js_key_open(j, "runs", '[');
	for (i = 0; i < runs->count; i++) {
		const struct query_run *r = &runs->items[i];

		js_open(j, '{');
		js_key_str(j, "id", r->id);
		js_key_str(j, "name", r->name);
		js_key_str(j, "experiment", r->experiment);
		js_key_str(j, "status", r->status);
		run_json_time(j, "start_time", r->start_ms);
		run_json_time(j, "end_time", r->end_ms);
		run_json_alerts(j, r);
		js_close(j, '}');
	}
	js_close(j, ']');
}

static void write_compared_param(struct js *j, const struct query_runs *runs, const char *key)
{
	size_t i;

	js_open(j, '{');
	js_key_str(j, "key", key);
	js_key_bool(j, "differs", is_param_different(runs, key));
	js_key_open(j, "values", '[');
	for (i = 0; i < runs->count; i++)
		js_str(j, api_param(&runs->items[i], key));
	js_close(j, ']');
	js_close(j, '}');
}

/* Params that differ come first. */
static void write_compared_params(struct call *c, struct js *j, const struct query_runs *runs)
{
	const char **keys;
	size_t total = 0, n = 0, i, k;
	int differs;

	for (i = 0; i < runs->count; i++)
		total += runs->items[i].param_count;
	keys = arena_array(c->arena, total + 1, sizeof(*keys));
	for (i = 0; i < runs->count; i++)
		for (k = 0; k < runs->items[i].param_count; k++)
			keys[n++] = runs->items[i].params[k].key;
	n = sort_unique_keys(keys, n);
	js_key_open(j, "params", '[');
	for (differs = 1; differs >= 0; differs--)
		for (i = 0; i < n; i++)
			if (is_param_different(runs, keys[i]) == differs)
				write_compared_param(j, runs, keys[i]);
	js_close(j, ']');
}

static double pick_metric_number(const struct query_metric *m, int column)
{
	const double values[] = { m->last, m->min, m->max };

	return values[column];
}

const char *api_said_best(const struct query_run *run, const char *key)
{
	for (size_t i = 0; i < run->tag_count; i++)
		if (!strncmp(run->tags[i].key, GOAL_TAG, sizeof(GOAL_TAG) - 1) &&
		    !strcmp(run->tags[i].key + sizeof(GOAL_TAG) - 1, key))
			return run->tags[i].value;
	return NULL;
}

/* Returns by key what the first of the runs that says anything says; the values are const char *. */
static struct map *collect_said_best(const struct query_runs *runs)
{
	struct map *said = map_new(sizeof(const char *));
	const size_t skip = sizeof(GOAL_TAG) - 1;

	for (size_t i = 0; i < runs->count; i++)
		for (size_t k = 0; k < runs->items[i].tag_count; k++) {
			const struct query_kv *tag = &runs->items[i].tags[k];
			const char **at;

			if (strncmp(tag->key, GOAL_TAG, skip))
				continue;
			at = map_put(said, tag->key + skip, strlen(tag->key + skip));
			*at = *at ? *at : tag->value;
		}
	return said;
}

static const char *find_said_best(const struct map *said, const char *key)
{
	const char **at = map_get(said, key, strlen(key));

	return at ? *at : NULL;
}

static size_t count_runs_with(const struct query_runs *runs, const char *key)
{
	size_t n = 0;

	for (size_t i = 0; i < runs->count; i++)
		n += api_metric(&runs->items[i], key) != NULL;
	return n;
}

/* Writes the metric to judge the runs by; null: they have none. */
static void write_compared_goal(struct js *j, const struct query_runs *runs, const struct map *said,
				const char *const *keys, size_t n)
{
	struct goal_choice goal = { 0 };

	for (size_t i = 0; i < n; i++)
		goal_choice_add(&goal, keys[i], find_said_best(said, keys[i]), count_runs_with(runs, keys[i]),
				runs->count);
	js_key_str(j, "goal", goal.key);
}

/* Writes which value of a metric is best, null if unknown; and its last, min and max, an array over the runs each; null
 * where a run has none. */
static void write_compared_metric(struct js *j, const struct query_runs *runs, const struct map *said,
				  const char *key)
{
	enum goal_best best = goal_best_of(key, find_said_best(said, key));
	static const char *const columns[] = { "last", "min", "max" };
	size_t i;
	int k;

	js_open(j, '{');
	js_key_str(j, "key", key);
	js_key_str(j, "best", best ? goal_best_word(best) : NULL);
	for (k = 0; k < 3; k++) {
		js_key_open(j, columns[k], '[');
		for (i = 0; i < runs->count; i++) {
			const struct query_metric *m = api_metric(&runs->items[i], key);

			if (!m || (k && isnan(pick_metric_number(m, k))))
				js_null(j);
			else
				js_double(j, pick_metric_number(m, k));
		}
		js_close(j, ']');
	}
	js_close(j, '}');
}

static void write_compared_metrics(struct call *c, struct js *j, const struct query_runs *runs)
{
	struct map *said = collect_said_best(runs);
	const char **keys;
	size_t total = 0, n = 0, i, k;

	for (i = 0; i < runs->count; i++)
		total += runs->items[i].metric_count;
	keys = arena_array(c->arena, total + 1, sizeof(*keys));
	for (i = 0; i < runs->count; i++)
		for (k = 0; k < runs->items[i].metric_count; k++)
			keys[n++] = runs->items[i].metrics[k].key;
	n = sort_unique_keys(keys, n);
	write_compared_goal(j, runs, said, keys, n);
	js_key_open(j, "metrics", '[');
	for (i = 0; i < n; i++)
		write_compared_metric(j, runs, said, keys[i]);
	js_close(j, ']');
	map_free(said);
}

/* Puts the runs into the order of the request. Returns the first id that does not exist, else NULL. */
static const char *order_runs_by_ids(struct call *c, struct query_runs *runs, const char *const *ids, size_t n)
{
	struct query_run *items = arena_array(c->arena, n + 1, sizeof(*items));
	size_t i, k;

	for (i = 0; i < n; i++) {
		for (k = 0; k < runs->count && strcmp(runs->items[k].id, ids[i]); k++)
			;
		if (k == runs->count)
			return ids[i];
		items[i] = runs->items[k];
	}
	runs->items = items;
	runs->count = n;
	return NULL;
}

/* Replies with the runs, their params and their metrics. field: name of the argument with the ids, for messages. */
static enum call_next reply_comparison(struct call *c, const char *const *ids, size_t n, const char *field)
{
	struct query_runs_opts o = { .id_count = n, .limit = COMPARE_RUNS_MAX, .with_deleted = true };
	struct js j = { .out = &c->out };
	const char *missing;
	struct query_runs runs;
	struct err err = ERR_INIT;

	if (n > COMPARE_RUNS_MAX)
		return call_fail(c, CALL_bad_value, field, "%s: at most %d runs", field, COMPARE_RUNS_MAX);
	if (!request_run_ids(c, field, &ids, n))
		return CALL_DONE;
	o.ids = ids;
	if (query_runs(c->api->store, &o, c->arena, &runs, &err))
		return request_refused(c, &err);
	missing = order_runs_by_ids(c, &runs, ids, n);
	if (missing)
		return call_fail(c, CALL_not_found, field, "no run %s", missing);
	js_open(&j, '{');
	write_compared_heads(&j, &runs);
	write_compared_params(c, &j, &runs);
	write_compared_metrics(c, &j, &runs);
	return js_reply(c, &j);
}

enum call_next on_compare_get(struct call *c)
{
	const char *const *ids;
	size_t n = call_arg_all(c, "run", &ids);

	return call_args_done(c) ? reply_comparison(c, ids, n, "run") : CALL_DONE;
}

enum call_next on_compare_post(struct call *c)
{
	json_t *array = NULL;
	const struct json_field fields[] = { { "runs", JSON_KIND_ARRAY, true, &array, NULL }, { 0 } };
	const char **ids;
	size_t i, n;

	if (!json_args(c, fields))
		return CALL_DONE;
	n = json_array_size(array);
	ids = arena_array(c->arena, n + 1, sizeof(*ids));
	for (i = 0; i < n; i++) {
		const char *id = json_string_value(json_array_get(array, i));

		ids[i] = id ? id : "";
	}
	return reply_comparison(c, ids, n, "runs");
}
