/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_history.c: the history of a run as rows of W&B: the points of one step are a row. A key with a step metric has
 * its points at the values of that metric, whose own point of the same time says which row they belong to. */
#include "web/api/wandb/wandb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "web/store/base/map.h"
#include "web/store/read/points.h"

enum { ROWS_MAX = 100000, POINTS_READ = 1000 };

/* Which rows: steps in [from, to), about `samples` of them. */
struct row_sel {
	struct arena *arena;
	const char *run;
	double start_s;
	struct map *stepped;	 /* the keys with a step metric, each with its name */
	struct map *marks;	 /* of a row_mark: the step of its row */
	const char *const *keys; /* NULL: all but those of the system */
	size_t key_count;
	int64_t from, to, samples;
	uint64_t thinned; /* rows are left out unless these bits of their hash are 0 */
	bool system;
	bool timestamp, runtime; /* rows have _timestamp and _runtime */
};

/* Where a point with a step metric is. */
struct row_mark {
	double wall_s;
	int64_t at;
};

struct row {
	int64_t step;
	json_t *values;
};

static int compare_row_steps(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return (x->step > y->step) - (x->step < y->step);
}

static json_t *number_json(double v)
{
	return isnan(v) ? json_string("NaN") : isinf(v) ? json_string(v < 0 ? "-Infinity" : "Infinity") : json_real(v);
}

static void put_mark(const struct row_sel *sel, struct map *rows, const struct points_row *p)
{
	const struct row_mark mark = { p->wall_time, wandb_rows_is_step(p->value) ? (int64_t)p->value : p->step };

	(void)rows;
	*(int64_t *)map_put(sel->marks, &mark, sizeof(mark)) = p->step;
}

/* Adds a point to its row, if that is wanted. */
static void put_point(const struct row_sel *sel, struct map *rows, const struct points_row *p)
{
	const bool system = !strncmp(p->key, "system/", 7);
	const struct row_mark mark = { p->wall_time, p->step };
	const int64_t *found =
		map_get(sel->stepped, p->key, strlen(p->key)) ? map_get(sel->marks, &mark, sizeof(mark)) : NULL;
	const int64_t step = found ? *found : p->step;
	struct row *row;

	if (system != sel->system || step < sel->from || step >= sel->to ||
	    (((uint64_t)step * 0x9e3779b97f4a7c15u) >> 40 & sel->thinned))
		return;
	row = map_put(rows, &step, sizeof(step));
	if (!row->values) {
		row->step = step;
		row->values = json_object();
		if (sel->timestamp)
			json_object_set_new(row->values, "_timestamp", json_real(p->wall_time));
		if (sel->runtime)
			json_object_set_new(row->values, "_runtime", json_real(p->wall_time - sel->start_s));
		if (!system)
			json_object_set_new(row->values, "_step", json_integer(step));
	}
	json_object_set_new(row->values, system ? arena_printf(sel->arena, "system.%s", p->key + 7) : p->key,
			    number_json(p->value));
}

/* Reads points into rows, or, without rows, as marks. Stops at too many rows. Returns false after failing the call. */
static bool read_points(struct call *c, const struct row_sel *sel, const struct points_sel *points, struct map *rows)
{
	struct points_row *read = arena_array(c->arena, POINTS_READ, sizeof(*read));
	struct points_cursor *cursor;
	struct err err = ERR_INIT;
	size_t n, i;
	int rc = points_open(&cursor, c->api->store, points, NULL, &err);

	while (!rc && !(rc = points_next(cursor, read, POINTS_READ, &n, &err)) && n &&
	       (!rows || map_count(rows) <= ROWS_MAX))
		for (i = 0; i < n; i++)
			(rows ? put_point : put_mark)(sel, rows, &read[i]);
	points_close(cursor);
	if (rc)
		call_fail_err(c, NULL, &err);
	return !rc;
}

static void clear_rows(struct map *rows)
{
	for (size_t i = 0; i < map_count(rows); i++)
		json_decref(((struct row *)map_at(rows, i))->values);
	map_clear(rows);
}

/* Reads the points of the range into rows by step; of more rows than the limit half, a quarter, …, by chance. Returns
 * false after failing the call. */
static bool read_rows(struct call *c, struct row_sel *sel, struct map *rows)
{
	size_t n = map_count(sel->stepped), i;
	const char **stepped = arena_array(c->arena, n + 1, sizeof(*stepped));
	struct points_sel all = { &sel->run, 1, sel->keys, sel->key_count, -1, INT64_MIN, INT64_MAX, false };
	struct points_sel range = all;
	bool read = true;

	range.from_step = sel->from;
	range.to_step = sel->to == INT64_MAX ? INT64_MAX : sel->to - 1;
	for (i = 0; i < n && !sel->keys; i++)
		stepped[i] = *(const char **)map_at(sel->stepped, i);
	if (!sel->keys) {
		all.keys = stepped;
		all.key_count = n;
	}
	for (sel->thinned = 0; read; sel->thinned = sel->thinned * 2 + 1) {
		read = read_points(c, sel, &range, rows) && (!n || read_points(c, sel, &all, rows));
		if (!read || map_count(rows) <= ROWS_MAX)
			break;
		clear_rows(rows);
	}
	return read;
}

static bool has_all_keys(const struct row_sel *sel, json_t *values)
{
	for (size_t i = 0; i < sel->key_count; i++)
		if (!json_object_get(values, sel->keys[i]))
			return false;
	return true;
}

/* The rows in the order of steps; of more than asked for, as many, evenly. A list of objects. */
static json_t *make_rows(struct call *c, struct row_sel *sel)
{
	struct map *rows = map_new(sizeof(struct row));
	json_t *all = json_array();
	struct row *sorted;
	size_t n = 0, i, want;

	if (read_rows(c, sel, rows)) {
		sorted = arena_array(c->arena, map_count(rows) + 1, sizeof(*sorted));
		for (i = 0; i < map_count(rows); i++) {
			sorted[n] = *(struct row *)map_at(rows, i);
			n += has_all_keys(sel, sorted[n].values);
		}
		qsort(sorted, n, sizeof(*sorted), compare_row_steps);
		if (sel->samples > 0 && n == (size_t)sel->samples + 1)
			n--; /* a page of rows: the last one begins the next page */
		want = sel->samples > 0 && (size_t)sel->samples < n ? (size_t)sel->samples : n;
		for (i = 0; i < want; i++)
			json_array_append(all,
					  sorted[want == 1 ? n - 1 : i * (n - 1) / (want > 1 ? want - 1 : 1)].values);
	}
	clear_rows(rows);
	map_free(rows);
	return all;
}

static void drop_map(void *arg)
{
	map_free(arg);
}

/* Finds the keys with a step metric, and reads the points of those metrics. Returns false after failing the call. */
static bool read_marks(struct call *c, const struct wandb_run *r, struct row_sel *sel)
{
	struct points_sel points = { &sel->run, 1, NULL, 0, -1, INT64_MIN, INT64_MAX, false };
	json_t *config = wandb_parse(wandb_text(r, "config"));
	json_t *rules = wandb_internal(config, "m");
	const char **metrics = NULL;
	size_t i, k;

	for (i = 0; i < r->run.metric_count; i++) {
		const char *key = r->run.metrics[i].key, *metric = wandb_rows_step_metric(rules, key);

		if (!metric)
			continue;
		*(const char **)map_put(sel->stepped, key, strlen(key)) = key;
		for (k = 0; k < points.key_count && strcmp(metrics[k], metric);)
			k++;
		if (k == points.key_count)
			list_push(c->arena, &metrics, &points.key_count, arena_strdup(c->arena, metric));
	}
	json_decref(config);
	points.keys = metrics;
	return !points.key_count || read_points(c, sel, &points, NULL);
}

static bool begin_sel(struct call *c, json_t *object, struct row_sel *ret)
{
	struct wandb_run r;

	if (!wandb_find(c, NULL, NULL, json_string_value(json_object_get(object, "id")), &r) || !r.found)
		return false;
	*ret = (struct row_sel){ .arena = c->arena,
				 .run = arena_strdup(c->arena, r.id),
				 .start_s = r.run.start_ms == INT64_MIN ? 0 : (double)r.run.start_ms / 1e3,
				 .stepped = map_new(sizeof(const char *)),
				 .marks = map_new(sizeof(int64_t)),
				 .from = INT64_MIN,
				 .to = INT64_MAX,
				 .timestamp = true,
				 .runtime = true };
	call_defer(c, drop_map, ret->stepped);
	call_defer(c, drop_map, ret->marks);
	return read_marks(c, &r, ret);
}

/* history(minStep, maxStep, samples) and events(samples): rows as JSON in texts. */
json_t *wandb_history(struct call *c, json_t *object, const struct graphql_field *f)
{
	json_t *rows, *texts = json_array(), *row;
	struct row_sel sel;
	size_t i;

	if (!begin_sel(c, object, &sel))
		return texts;
	sel.system = !strcmp(f->name, "events");
	sel.from = graphql_int(f, "minStep", INT64_MIN, INT64_MIN, INT64_MAX);
	sel.to = graphql_int(f, "maxStep", INT64_MAX, INT64_MIN, INT64_MAX);
	sel.samples = graphql_int(f, "samples", 0, 0, INT64_MAX);
	if (sel.samples > ROWS_MAX)
		return call_fail(c, CALL_bad_request, "samples", "samples: at most %d rows", ROWS_MAX), texts;
	rows = make_rows(c, &sel);
	json_array_foreach(rows, i, row) {
		char *text = json_dumps(row, JSON_COMPACT);

		json_array_append_new(texts, json_string(text ? text : "{}"));
		free(text);
	}
	json_decref(rows);
	return texts;
}

static bool names_key(json_t *keys, const char *name)
{
	json_t *key;
	size_t i;

	json_array_foreach(keys, i, key)
		if (json_is_string(key) && !strcmp(json_string_value(key), name))
			return true;
	return false;
}

/* sampledHistory(specs: ["{keys, samples, minStep, maxStep}"]): a list of rows for each, with the keys alone. */
json_t *wandb_sampled_history(struct call *c, json_t *object, const struct graphql_field *f)
{
	json_t *all = json_array(), *text, *key;
	struct row_sel sel;
	size_t i, k;

	if (!begin_sel(c, object, &sel))
		return all;
	json_array_foreach(graphql_arg(f, "specs"), i, text) {
		json_t *spec = wandb_parse(json_string_value(text)), *keys = json_object_get(spec, "keys");
		json_t *min = json_object_get(spec, "minStep"), *max = json_object_get(spec, "maxStep");
		const char **names = arena_array(c->arena, json_array_size(keys) + 1, sizeof(*names));

		sel.key_count = 0;
		json_array_foreach(keys, k, key)
			if (json_is_string(key) && *json_string_value(key) != '_')
				names[sel.key_count++] = arena_strdup(c->arena, json_string_value(key));
		sel.keys = sel.key_count ? names : NULL;
		sel.timestamp = !sel.keys || names_key(keys, "_timestamp");
		sel.runtime = !sel.keys || names_key(keys, "_runtime");
		sel.from = json_is_integer(min) ? json_integer_value(min) : INT64_MIN;
		sel.to = json_is_integer(max) ? json_integer_value(max) + 1 : INT64_MAX; /* maxStep is included */
		sel.samples = json_integer_value(json_object_get(spec, "samples"));
		json_decref(spec);
		json_array_append_new(all, make_rows(c, &sel));
	}
	return all;
}
