/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_rows.c: converts W&B's JSON to records: rows of the history to points and media, system statistics, the config
 * to params, values of the summary that no row has to metrics and tags. */
#include "web/api/wandb/wandb.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/text.h"

#define KEY_BYTES 1000
#define DEPTH_MAX 32

bool wandb_rows_number(json_t *value, double *ret)
{
	if (json_is_boolean(value))
		*ret = json_is_true(value);
	return json_is_boolean(value) || json_to_double(value, ret);
}

static const char *member_text(json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

/* A text itself, else the JSON of a value; the caller frees it. NULL: no memory. */
static char *dump_text(json_t *value)
{
	return json_is_string(value) ? strdup(json_string_value(value))
				     : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
}

/* Keys that W&B adds to every row. */
static bool is_added_key(const char *key)
{
	static const char *const keys[] = { "_step", "_runtime", "_timestamp", "_wandb" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(key, keys[i]))
			return true;
	return false;
}

static void note_seen(struct wandb_rows *w, const char *key, json_t *value)
{
	if (w->seen)
		json_object_set(w->seen, key, value);
}

static void add_point(struct wandb_rows *w, const char *key, int64_t step, double value)
{
	encode_scalar(w->to, &(struct encode_scalar){ .key = wandb_span(key),
						      .step = step,
						      .wall_time = w->wall_s,
						      .value = value,
						      .rank = EVENT_RANK_RUN,
						      .journal_rank = w->rank });
}

static void add_media(struct wandb_rows *w, const char *key, int64_t step, const struct buf *content)
{
	const unsigned char *at = (const unsigned char *)content->data;

	media_encode(w->to, &(struct media_place){ wandb_span(key), step, w->wall_s, EVENT_RANK_RUN, w->rank },
		     (struct event_span){ at, at + content->len });
}

static void add_text(struct wandb_rows *w, const char *key, int64_t step, const char *text)
{
	struct buf content;

	buf_init(&content, CALL_BUFFERED_MAX);
	media_add_text(&content, wandb_span(text));
	add_media(w, key, step, &content);
	buf_done(&content);
}

/* --- steps of define_metric ------------------------------------------------------------------------------------- */

json_t *wandb_internal(json_t *config, const char *part)
{
	return json_object_get(json_object_get(json_object_get(config, "_wandb"), "value"), part);
}

bool wandb_rows_is_step(double at)
{
	return at == rint(at) && fabs(at) < 9e15;
}

/* By the key's own rule, else by that of the first pattern. */
const char *wandb_rows_step_metric(json_t *rules, const char *key)
{
	json_t *rule, *found = NULL;
	const char *metric;
	size_t i;

	json_array_foreach(rules, i, rule) {
		const char *glob = member_text(rule, "2");

		if (!strcmp(member_text(rule, "1"), key)) {
			found = rule;
			break;
		}
		if (!found && *glob && !fnmatch(glob, key, 0))
			found = rule;
	}
	/* "5" is its position in the list, from 1; "4" its name */
	rule = json_array_get(rules, (size_t)json_integer_value(json_object_get(found, "5")) - 1);
	metric = json_string_value(rule ? json_object_get(rule, "1") : json_object_get(found, "4"));
	return metric && strcmp(metric, key) ? metric : NULL;
}

/* The step of a key's value in the current row: the row's, or the whole number that its step metric has there. */
static int64_t find_step(struct wandb_rows *w, const char *key)
{
	const char *metric = wandb_rows_step_metric(w->rules, key);
	double at;

	if (!metric || !wandb_rows_number(json_object_get(w->row, metric), &at))
		return w->step;
	return wandb_rows_is_step(at) ? (int64_t)at : w->step;
}

/* --- media ------------------------------------------------------------------------------------------------------ */

/* {"values": counts, "bins": edges}, or {"packedBins": {"min", "size", "count"}}. */
static bool add_histogram(struct wandb_rows *w, const char *key, int64_t step, json_t *histogram)
{
	json_t *values = json_object_get(histogram, "values"), *bins = json_object_get(histogram, "bins");
	json_t *packed = json_object_get(histogram, "packedBins");
	size_t n = json_array_size(values), i;
	double *edges = arena_array(w->c->arena, n + 1, sizeof(*edges)),
	       *counts = arena_array(w->c->arena, n + 1, sizeof(*counts));
	double from = json_number_value(json_object_get(packed, "min")),
	       width = json_number_value(json_object_get(packed, "size"));
	struct buf content;

	if (!n || (!packed && json_array_size(bins) != n + 1))
		return false;
	for (i = 0; i < n + 1; i++) {
		edges[i] = packed ? from + width * (double)i : json_number_value(json_array_get(bins, i));
		counts[i] = json_number_value(json_array_get(values, i));
	}
	buf_init(&content, CALL_BUFFERED_MAX);
	media_add_histogram(&content, edges, counts, n);
	add_media(w, key, step, &content);
	buf_done(&content);
	return true;
}

/* Remembers where a file belongs whose name the row has: it is uploaded on its own. */
static void expect_file(struct wandb_rows *w, const char *key, json_t *value, const char *type)
{
	const char *path = member_text(value, "path");
	json_t *o;

	if (!*path)
		wandb_leave_out(w->c, w->job, "'%s': a value of type %.60s without a file was left out", key, type);
	if (!*path || !w->pending)
		return;
	o = json_pack("{s:s, s:I, s:f, s:s}", "key", key, "step", (json_int_t)find_step(w, key), "time", w->wall_s,
		      "type", type);
	json_object_set(o, "width", json_object_get(value, "width"));
	json_object_set(o, "height", json_object_get(value, "height"));
	json_object_set_new(w->pending, path, o);
}

static void add_caption(struct wandb_rows *w, const char *key, json_t *value)
{
	const char *caption = member_text(value, "caption");

	if (*caption)
		add_text(w, arena_printf(w->c->arena, "%.900s/caption", key), find_step(w, key), caption);
}

static void add_item(struct wandb_rows *w, const char *key, json_t *value, const char *type)
{
	if (strcmp(type, "histogram"))
		expect_file(w, key, value, type);
	else if (!add_histogram(w, key, find_step(w, key), value))
		wandb_leave_out(w->c, w->job, "'%s': a histogram whose bins and counts do not match was left out", key);
	add_caption(w, key, value);
}

/* The items of a list of media in a row: names of pictures, or objects; NULL: it is no list. */
static json_t *find_item_list(json_t *value, const char *type)
{
	static const char *const kinds[] = { "audio", "videos", "html", "plotly" };

	if (!strcmp(type, "images/separated"))
		return json_object_get(value, "filenames");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(type, kinds[i]))
			return json_object_get(value, kinds[i]);
	return NULL;
}

/* Media of one step become KEY/0, KEY/1, …, as dptrack.log names a list of them. */
static bool add_media_list(struct wandb_rows *w, const char *key, json_t *value, const char *type)
{
	json_t *names = find_item_list(value, type), *captions = json_object_get(value, "captions"), *one, *item;
	const char *kind;
	size_t i;

	json_array_foreach(names, i, one) {
		kind = json_is_string(one) ? "image-file" : member_text(one, "_type");
		item = json_is_object(one) ? json_copy(one) : json_copy(value);
		if (json_is_string(one))
			json_object_set(item, "path", one);
		if (json_is_string(json_array_get(captions, i)))
			json_object_set(item, "caption", json_array_get(captions, i));
		add_item(w, arena_printf(w->c->arena, "%.900s/%zu", key, i), item, *kind ? kind : "audio-file");
		json_decref(item);
	}
	return json_array_size(names) > 0;
}

/* --- rows ------------------------------------------------------------------------------------------------------- */

/* Converts a value of a row by its kind. A list of numbers or texts is kept as its JSON. */
static void add_value(struct wandb_rows *w, const char *key, json_t *value, int depth)
{
	const char *type = member_text(value, "_type"), *name;
	double number;
	json_t *inner;
	char *text;

	if (wandb_rows_number(value, &number)) {
		add_point(w, key, find_step(w, key), number);
		note_seen(w, key, value);
	} else if (*type) {
		note_seen(w, key, value);
		if (!add_media_list(w, key, value, type))
			add_item(w, key, value, type);
	} else if (json_is_object(value) && depth < DEPTH_MAX) {
		json_object_foreach(value, name, inner)
			add_value(w, arena_printf(w->c->arena, "%.490s.%.490s", key, name), inner, depth + 1);
	} else if (!json_is_null(value)) {
		note_seen(w, key, value);
		text = dump_text(value);
		add_text(w, key, find_step(w, key), text ? text : "");
		free(text);
	}
}

void wandb_rows_row(struct wandb_rows *w, json_t *row, int64_t fallback_step)
{
	json_t *step = json_object_get(row, "_step"), *value;
	const char *key;
	double at;

	w->row = row;
	w->step = json_is_number(step) ? (int64_t)json_number_value(step) : fallback_step;
	w->wall_s = wandb_rows_number(json_object_get(row, "_timestamp"), &at) && at > 0 && at < 1e11 ? at : w->now_s;
	json_object_foreach(row, key, value)
		if (!is_added_key(key))
			add_value(w, key, value, 0);
	w->row = NULL;
}

/* A sample of system statistics: W&B's names below system/, numbered by sample. */
void wandb_rows_events(struct wandb_rows *w, json_t *row, int64_t number)
{
	const char *key;
	json_t *value;
	double v;

	w->wall_s = wandb_rows_number(json_object_get(row, "_timestamp"), &v) && v > 0 && v < 1e11 ? v : w->now_s;
	json_object_foreach(row, key, value)
		if (!is_added_key(key) && wandb_rows_number(value, &v))
			add_point(
				w,
				arena_printf(w->c->arena, "system/%.900s", key + (strncmp(key, "system.", 7) ? 0 : 7)),
				number, v);
}

/* --- config ----------------------------------------------------------------------------------------------------- */

static void add_param(struct buf *to, const char *key, json_t *value, double wall_s)
{
	struct encode_param p = { .key = wandb_span(key), .type = EVENT_TYPE_TEXT, .changed = true };
	char *text = NULL;

	if (json_is_boolean(value)) {
		p.type = EVENT_TYPE_BOOL;
		p.integer = json_is_true(value);
	} else if (json_is_integer(value)) {
		p.type = EVENT_TYPE_I64;
		p.integer = json_integer_value(value);
	} else if (json_is_real(value)) {
		p.type = EVENT_TYPE_F64;
		p.value = json_real_value(value);
	} else {
		text = dump_text(value);
		p.text = wandb_span(text ? text : "");
	}
	encode_param(to, wall_s, &p);
	free(text);
}

/* Adds the params of a value, with secrets hidden, also in the value itself. */
static void add_config_value(struct buf *to, const char *key, json_t *value, double wall_s, int depth)
{
	const char *name, *text = json_string_value(value);
	char inner[KEY_BYTES];
	json_t *v;

	if (text && text_hide_secret(key, text) != text)
		json_string_set(value, text_hide_secret(key, text));
	if (!json_is_object(value) || !json_object_size(value) || depth >= DEPTH_MAX) {
		add_param(to, key, value, wall_s);
		return;
	}
	json_object_foreach(value, name, v) {
		snprintf(inner, sizeof(inner), "%.490s.%.490s", key, name);
		add_config_value(to, inner, v, wall_s, depth + 1);
	}
}

void wandb_rows_config(struct buf *to, json_t *config, double wall_s)
{
	const char *key;
	json_t *value, *inner;

	json_object_foreach(config, key, value) {
		inner = json_object_get(value, "value");
		if (strcmp(key, "_wandb") && strcmp(key, "wandb_version"))
			add_config_value(to, key, inner ? inner : value, wall_s, 0);
	}
}

/* --- summary ---------------------------------------------------------------------------------------------------- */

/* The last value that rows have: of this request, else of the store. Returns 1 a number, 0 rows without numbers, -1 no
 * row. */
static int find_last_value(const struct wandb_rows *w, const struct query_run *run, const char *key, double *ret)
{
	json_t *seen = json_object_get(w->seen, key);
	const struct query_metric *m = run ? api_metric(run, key) : NULL;

	if (seen)
		return wandb_rows_number(seen, ret);
	if (m)
		*ret = m->last;
	return m ? 1 : -1;
}

static void add_tag_of(struct wandb_rows *w, const char *key, json_t *value)
{
	char *text = dump_text(value);

	if (text)
		encode_tag(w->to, w->wall_s, wandb_span(key), wandb_span(text_hide_secret(key, text)));
	free(text);
}

/* A value of the summary: of a key without rows a point at the last step, or a tag; of one with rows only if a program
 * set another value. W&B keeps the extremes that define_metric asks for as members; the store computes them. */
static void add_final(struct wandb_rows *w, const struct query_run *run, const char *key, json_t *value, int depth)
{
	double last = NAN, v;
	int rows = find_last_value(w, run, key, &last);
	const char *name;
	json_t *inner;

	if (json_is_object(value) && !json_object_get(value, "_type") && depth < DEPTH_MAX) {
		json_object_foreach(value, name, inner)
			if (rows < 0 || (strcmp(name, "min") && strcmp(name, "max") && strcmp(name, "last")))
				add_final(w, run, arena_printf(w->c->arena, "%.490s.%.490s", key, name), inner,
					  depth + 1);
	} else if (rows >= 0) {
		if (rows && wandb_rows_number(value, &v) && isfinite(last) && v != last)
			add_tag_of(w, arena_printf(w->c->arena, "summary.%.900s", key), value);
	} else if (wandb_rows_number(value, &v)) {
		add_point(w, key, w->step, v);
	} else if (json_is_string(value) || json_is_array(value)) {
		add_tag_of(w, key, value);
	}
}

void wandb_rows_finals(struct wandb_rows *w, const struct query_run *run, json_t *summary)
{
	const char *key;
	json_t *value;

	json_object_foreach(summary, key, value)
		if (!is_added_key(key))
			add_final(w, run, key, value, 0);
}
