/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_history.c: the history of a run as rows of W&B: the points of one step are a row. */
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
	const char *const *keys; /* NULL: all but those of the system */
	size_t key_count;
	int64_t from, to, samples;
	bool system;
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

static void put_point(const struct row_sel *sel, struct map *rows, const struct points_row *p)
{
	const bool system = !strncmp(p->key, "system/", 7);
	struct row *row;

	if (system != sel->system || p->rank != -1 || map_count(rows) >= ROWS_MAX)
		return;
	row = map_put(rows, &p->step, sizeof(p->step));
	if (!row->values) {
		row->step = p->step;
		row->values =
			json_pack("{s:f, s:f}", "_timestamp", p->wall_time, "_runtime", p->wall_time - sel->start_s);
		if (!system)
			json_object_set_new(row->values, "_step", json_integer(p->step));
	}
	json_object_set_new(row->values, system ? arena_printf(sel->arena, "system.%s", p->key + 7) : p->key,
			    number_json(p->value));
}

/* Reads the points of the range into rows by step. Returns false after failing the call. */
static bool read_rows(struct call *c, const struct row_sel *sel, struct map *rows)
{
	const struct points_sel points = { .runs = &sel->run,
					   .run_count = 1,
					   .keys = sel->keys,
					   .key_count = sel->key_count,
					   .rank = -1,
					   .from_step = sel->from,
					   .to_step = sel->to == INT64_MAX ? INT64_MAX : sel->to - 1 };
	struct points_row *read = arena_array(c->arena, POINTS_READ, sizeof(*read));
	struct points_cursor *cursor;
	struct err err = ERR_INIT;
	size_t n, i;
	int rc = points_open(&cursor, c->api->store, &points, NULL, &err);

	while (!rc && !(rc = points_next(cursor, read, POINTS_READ, &n, &err)) && n)
		for (i = 0; i < n; i++)
			put_point(sel, rows, &read[i]);
	points_close(cursor);
	if (rc)
		call_fail_err(c, NULL, &err);
	return !rc;
}

static bool has_all_keys(const struct row_sel *sel, json_t *values)
{
	for (size_t i = 0; i < sel->key_count; i++)
		if (!json_object_get(values, sel->keys[i]))
			return false;
	return true;
}

/* The rows in the order of steps; of more than asked for, as many, evenly. A list of objects. */
static json_t *make_rows(struct call *c, const struct row_sel *sel)
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
	for (i = 0; i < map_count(rows); i++)
		json_decref(((struct row *)map_at(rows, i))->values);
	map_free(rows);
	return all;
}

static bool begin_sel(struct call *c, json_t *object, struct row_sel *ret)
{
	struct wandb_run r;

	if (!wandb_find(c, NULL, NULL, json_string_value(json_object_get(object, "id")), &r) || !r.found)
		return false;
	*ret = (struct row_sel){ .arena = c->arena,
				 .run = arena_strdup(c->arena, r.id),
				 .start_s = r.run.start_ms == INT64_MIN ? 0 : (double)r.run.start_ms / 1e3,
				 .from = INT64_MIN,
				 .to = INT64_MAX };
	return true;
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
	sel.samples = graphql_int(f, "samples", 0, 0, ROWS_MAX);
	rows = make_rows(c, &sel);
	json_array_foreach(rows, i, row) {
		char *text = json_dumps(row, JSON_COMPACT);

		json_array_append_new(texts, json_string(text ? text : "{}"));
		free(text);
	}
	json_decref(rows);
	return texts;
}

/* sampledHistory(specs: ["{keys, samples, minStep, maxStep}"]): a list of rows for each. */
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
		sel.from = json_is_integer(min) ? json_integer_value(min) : INT64_MIN;
		sel.to = json_is_integer(max) ? json_integer_value(max) + 1 : INT64_MAX; /* maxStep is included */
		sel.samples = json_integer_value(json_object_get(spec, "samples"));
		json_decref(spec);
		json_array_append_new(all, make_rows(c, &sel));
	}
	return all;
}
