/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_read.c: members of runs and projects that are read when they are asked for. */
#include "web/api/wandb/wandb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The run of an object, with its texts, read once for all its members; false after failing the call. */
static bool run_of(struct call *c, json_t *object, struct wandb_run *ret)
{
	const char *id = json_string_value(json_object_get(object, "id"));
	struct wandb_run *last = *graphql_cache(c);

	if (!last || strcmp(last->id, id)) {
		last = arena_alloc(c->arena, sizeof(*last));
		if (!wandb_find(c, NULL, NULL, id, last) || !last->found)
			return false;
		*graphql_cache(c) = last;
	}
	*ret = *last;
	return true;
}

static json_t *text_json(json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	json_t *o = json_string(text ? text : "{}");

	free(text);
	json_decref(value);
	return o;
}

json_t *wandb_make_config(struct call *c, json_t *object, const struct graphql_field *f)
{
	struct wandb_run r;
	json_t *all;

	(void)f;
	if (!run_of(c, object, &r))
		return NULL;
	if (wandb_text(&r, "config"))
		return json_string(wandb_text(&r, "config"));
	all = json_object();
	for (size_t i = 0; i < r.run.param_count; i++)
		json_object_set_new(all, r.run.params[i].key,
				    json_pack("{s:o}", "value", wandb_value_of_text(r.run.params[i].value)));
	return text_json(all);
}

/* The internal part of the config; a client takes the run for begun if it has "t". */
json_t *wandb_make_wandb_config(struct call *c, json_t *object, const struct graphql_field *f)
{
	json_t *config, *inner, *part = json_object();
	struct wandb_run r;

	(void)f;
	if (!run_of(c, object, &r))
		return part;
	config = wandb_parse(wandb_text(&r, "config"));
	inner = wandb_internal(config, "t");
	json_object_set_new(part, "t", inner ? json_incref(inner) : json_object());
	json_decref(config);
	return text_json(part);
}

json_t *wandb_make_summary(struct call *c, json_t *object, const struct graphql_field *f)
{
	struct wandb_run r;
	json_t *all;

	(void)f;
	if (!run_of(c, object, &r))
		return NULL;
	if (wandb_text(&r, "summary"))
		return json_string(wandb_text(&r, "summary"));
	all = json_object();
	for (size_t i = 0; i < r.run.metric_count; i++)
		if (isfinite(r.run.metrics[i].last))
			json_object_set_new(all, r.run.metrics[i].key, json_real(r.run.metrics[i].last));
	return text_json(all);
}

/* The number of lines of a stream, of all clients: "history", "events" or "console". */
static json_t *count_lines(struct call *c, json_t *object, const char *kind)
{
	struct wandb_run r;
	int64_t n = 0;

	if (!run_of(c, object, &r))
		return NULL;
	for (size_t i = 0; i < r.texts.count; i++)
		if (!strncmp(r.texts.items[i].key, "stream", 6)) {
			json_t *o = wandb_parse(r.texts.items[i].value);

			n += json_integer_value(json_object_get(o, kind));
			json_decref(o);
		}
	return json_integer(n);
}

json_t *wandb_make_history_count(struct call *c, json_t *object, const struct graphql_field *f)
{
	(void)f;
	return count_lines(c, object, "history");
}

json_t *wandb_make_events_count(struct call *c, json_t *object, const struct graphql_field *f)
{
	(void)f;
	return count_lines(c, object, "events");
}

json_t *wandb_make_log_count(struct call *c, json_t *object, const struct graphql_field *f)
{
	(void)f;
	return count_lines(c, object, "console");
}

/* The last line of a stream: JSON of a list of one text. */
json_t *wandb_make_tail(struct call *c, json_t *object, const struct graphql_field *f)
{
	struct wandb_run r;
	const char *line;

	if (!run_of(c, object, &r))
		return NULL;
	line = wandb_text(&r, strcmp(f->name, "historyTail") ? "events.tail" : "history.tail");
	return text_json(line ? json_pack("[s]", line) : json_array());
}

json_t *wandb_make_stopped(struct call *c, json_t *object, const struct graphql_field *f)
{
	struct wandb_run r;

	(void)f;
	return run_of(c, object, &r) ? json_boolean(wandb_text(&r, "stop") != NULL) : NULL;
}

/* {"lastStep", "keys": {KEY: {"typeCounts": [{"type", "count"}]}}} */
json_t *wandb_make_history_keys(struct call *c, json_t *object, const struct graphql_field *f)
{
	json_t *keys = json_object(), *config, *rules;
	struct wandb_run r;
	int64_t last = -1;

	(void)f;
	if (!run_of(c, object, &r))
		return keys;
	config = wandb_parse(wandb_text(&r, "config"));
	rules = wandb_internal(config, "m");
	for (size_t i = 0; i < r.run.metric_count; i++) {
		const struct query_metric *m = &r.run.metrics[i];

		if (!strncmp(m->key, "system/", 7))
			continue;
		if (m->last_step > last && !wandb_rows_step_metric(rules, m->key))
			last = m->last_step;
		json_object_set_new(
			keys, m->key,
			json_pack("{s:[{s:s, s:I}]}", "typeCounts", "type", "number", "count", (json_int_t)m->count));
	}
	json_decref(config);
	return json_pack("{s:I, s:o}", "lastStep", (json_int_t)last, "keys", keys);
}

/* A run of a project: run(name) and bucket(name). */
json_t *wandb_make_run(struct call *c, json_t *object, const struct graphql_field *f)
{
	const char *name = graphql_text(f, "name");
	struct wandb_run r;

	if (!name || !wandb_find(c, json_string_value(json_object_get(object, "entityName")),
				 json_string_value(json_object_get(object, "name")), name, &r))
		return NULL;
	return r.found && !r.run.deleted ? wandb_run_json(c, &r.run) : NULL;
}
