/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_items.c: converts W&B's JSON to points, images, histograms, tables, params. */
#include "web/cli/import/wandb_file.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <strings.h>

#include "tracker/base/file.h"
#include "tracker/event/wire.h"

#define KEY_BYTES 1000
#define DEPTH_MAX 32
#define CONTENT_MAX ((size_t)64 << 20)

/* --- by path ---------------------------------------------------------------------------------------------------- */

/* Python writes bare NaN and Infinity, which are not JSON: they are stored as strings. */
static json_t *parse_wandb_value(struct event_text t)
{
	static const char *const words[] = { "NaN", "Infinity", "-Infinity" };

	for (size_t i = 0; i < 3; i++)
		if (event_text_equal(t, words[i]))
			return json_string(words[i]);
	return json_loadb(t.at, t.len, JSON_DECODE_ANY, NULL);
}

/* Finds the object that contains the last name of the path, and creates it if needed. *ret_name: that name. */
static json_t *find_item_parent(json_t *object, struct event_span item, char *ret_name, size_t room)
{
	struct wire_field f;
	bool any = false;

	while (wire_next(&item, &f) > 0) {
		if ((f.number != 1 && f.number != 2) || f.type != WIRE_BYTES)
			continue;
		if (any) {
			json_t *inner = json_object_get(object, ret_name);

			if (!json_is_object(inner)) {
				inner = json_object();
				if (json_object_set_new(object, ret_name, inner))
					return NULL;
			}
			object = inner;
		}
		snprintf(ret_name, room, "%.*s", (int)(wire_text(&f).len < room ? wire_text(&f).len : room - 1),
			 wire_text(&f).at);
		any = true;
	}
	return any ? object : NULL;
}

static void apply_wandb_item(json_t *object, struct event_span item, bool remove)
{
	char name[KEY_BYTES];
	json_t *at = find_item_parent(object, item, name, sizeof(name)), *value;
	struct wire_field f = { 0 };

	if (at && remove)
		json_object_del(at, name);
	while (at && !remove && wire_next(&item, &f) > 0) {
		value = f.number == 16 && f.type == WIRE_BYTES ? parse_wandb_value(wire_text(&f)) : NULL;
		if (value)
			json_object_set_new(at, name, value); /* a name that is not UTF-8 is skipped */
	}
}

void wandb_merge_from(json_t *object, struct event_span record, unsigned n)
{
	struct wire_field f;

	while (wire_next(&record, &f) > 0)
		if (f.number == n && f.type == WIRE_BYTES)
			apply_wandb_item(object, f.bytes, false);
}

void wandb_merge(json_t *object, struct event_span record)
{
	struct event_span again = record;
	struct wire_field f;

	wandb_merge_from(object, record, 1);
	while (wire_next(&again, &f) > 0)
		if (f.number == 2 && f.type == WIRE_BYTES)
			apply_wandb_item(object, f.bytes, true);
}

/* --- rows ------------------------------------------------------------------------------------------------------- */

static const char *wandb_member_text(json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

/* Opens a file that the row names, below the run's files. Returns false if it is missing or outside them. */
static bool open_item_file(struct wandb_items *w, json_t *value, struct file_map *ret)
{
	const char *path = wandb_member_text(value, "path");
	char whole[4096];

	if (!w->files || !*path || *path == '/' || strstr(path, ".."))
		return false;
	snprintf(whole, sizeof(whole), "%.2000s/%.2000s", w->files, path);
	return !importer_map(w->run->of, ret, whole, NULL);
}

static unsigned read_pixel_count(json_t *value, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(value, key));

	return n > 0 && n < 1000000 ? (unsigned)n : 0;
}

static bool add_item_file(struct wandb_items *w, json_t *value, const char *type, struct buf *to)
{
	struct file_map map = { 0 };
	struct event_span file;

	if (!open_item_file(w, value, &map))
		return false;
	file = (struct event_span){ map.bytes, map.bytes + map.n };
	if (!strcmp(type, "video-file") && map.n > 3 && memcmp(map.bytes, "GIF8", 4))
		media_add_audio(to, file, (struct event_text){ "video/mp4", 9 }); /* its content tells MP4 from WebM */
	else if (!strcmp(type, "audio-file"))
		media_add_audio(to, file, (struct event_text){ "audio/wav", 9 });
	else
		media_add_image(to, file, read_pixel_count(value, "width"), read_pixel_count(value, "height"));
	file_map_close(&map);
	return true;
}

/* Adds a file of text: the JSON of a Plotly figure, or HTML, whose beginning marks it as a document. */
static bool add_item_text(struct wandb_items *w, json_t *value, const char *type, struct buf *to)
{
	static const char head[] = "<!doctype html><meta charset=\"utf-8\">";
	struct file_map map = { 0 };
	struct buf text;
	size_t blank = 0;
	const char *at;
	bool whole;

	if (!open_item_file(w, value, &map))
		return false;
	at = (const char *)map.bytes;
	while (blank < map.n && isspace(map.bytes[blank]))
		blank++;
	whole = (map.n - blank >= 9 && !strncasecmp(at + blank, "<!doctype", 9)) ||
		(map.n - blank >= 5 && !strncasecmp(at + blank, "<html", 5));
	buf_init(&text, CONTENT_MAX);
	if (!strcmp(type, "html-file") && !whole)
		buf_add(&text, head, sizeof(head) - 1);
	buf_add(&text, at, map.n);
	file_map_close(&map);
	media_add_text(to, (struct event_text){ text.data, text.len });
	buf_done(&text);
	return true;
}

static bool add_item_table(struct wandb_items *w, json_t *value, struct buf *to)
{
	struct file_map map = { 0 };
	json_t *table;
	bool added;

	if (!open_item_file(w, value, &map))
		return false;
	table = json_loadb((const char *)map.bytes, map.n, 0, NULL);
	file_map_close(&map);
	added = table && content_add_table(to, table);
	json_decref(table);
	return added;
}

static void mark_key_seen(struct wandb_items *w, const char *key, double value)
{
	struct wandb_last *last = map_put(w->seen, key, strlen(key));

	if (last)
		last->value = value;
}

/* The rule of a key: its own, else that of the first pattern. */
static const struct wandb_rule *find_step_rule(const struct wandb_items *w, const char *key)
{
	const struct wandb_rule *r, *found = NULL;

	for (r = w->rules; r; r = r->next) {
		if (!strcmp(r->name, key))
			return r;
		if (!found && strchr(r->name, '*') && !fnmatch(r->name, key, 0))
			found = r;
	}
	return found && strcmp(found->step_metric, key) ? found : NULL;
}

/* The step of a key's value in the current row: the row's, or the whole number that its step metric has. */
static int64_t find_value_step(struct wandb_items *w, const char *key)
{
	const struct wandb_rule *r = find_step_rule(w, key);
	const struct wandb_last *last;
	double at = NAN;

	if (!r || !*r->step_metric)
		return w->step;
	last = map_get(w->seen, r->step_metric, strlen(r->step_metric));
	if (last)
		at = last->value;
	if (json_object_get(w->row, r->step_metric))
		at = content_number(json_object_get(w->row, r->step_metric));
	return at == rint(at) && fabs(at) < 9e15 ? (int64_t)at : w->step;
}

static void import_history_text(struct wandb_items *w, const char *key, const char *text)
{
	struct buf content;

	buf_init(&content, CONTENT_MAX);
	media_add_text(&content, (struct event_text){ text, strlen(text) });
	importer_media(w->run, key, find_value_step(w, key), w->wall_s, &content);
	buf_done(&content);
}

/* The caption of a picture or video is the text KEY/caption, as dptrack.log records it. */
static void import_wandb_caption(struct wandb_items *w, const char *key, json_t *value, const char *type)
{
	const char *caption = wandb_member_text(value, "caption");
	char inner[KEY_BYTES];

	if (!*caption || (strcmp(type, "image-file") && strcmp(type, "video-file")))
		return;
	snprintf(inner, sizeof(inner), "%.900s/caption", key);
	import_history_text(w, inner, caption);
}

static void import_wandb_media(struct wandb_items *w, const char *key, json_t *value, const char *type)
{
	struct buf content;
	bool added = false;

	buf_init(&content, CONTENT_MAX);
	if (!strcmp(type, "image-file") || !strcmp(type, "audio-file") || !strcmp(type, "video-file"))
		added = add_item_file(w, value, type, &content);
	else if (!strcmp(type, "html-file") || !strcmp(type, "plotly-file"))
		added = add_item_text(w, value, type, &content);
	else if (!strcmp(type, "histogram"))
		added = content_add_histogram(&content, value);
	else if (!strcmp(type, "table-file"))
		added = add_item_table(w, value, &content);
	if (added)
		importer_media(w->run, key, find_value_step(w, key), w->wall_s, &content);
	else
		importer_leave_out(w->run->of, "%.60s of W&B: %.100s", type, key);
	if (added)
		import_wandb_caption(w, key, value, type);
	buf_done(&content);
}

/* The items of a list of media in a row: names of pictures, or objects; NULL if it is no list. */
static json_t *find_media_list(json_t *value, const char *type)
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
static bool import_media_list(struct wandb_items *w, const char *key, json_t *value, const char *type)
{
	json_t *names = find_media_list(value, type), *captions = json_object_get(value, "captions"), *one, *item;
	char inner[KEY_BYTES];
	const char *kind;
	size_t i;

	json_array_foreach(names, i, one) {
		kind = json_is_string(one) ? "image-file" : wandb_member_text(one, "_type");
		item = json_is_object(one) ? json_deep_copy(one) : json_deep_copy(value);
		if (json_is_string(one))
			json_object_set(item, "path", one);
		if (json_is_string(json_array_get(captions, i)))
			json_object_set(item, "caption", json_array_get(captions, i));
		snprintf(inner, sizeof(inner), "%.900s/%zu", key, i);
		import_wandb_media(w, inner, item, *kind ? kind : "audio-file");
		json_decref(item);
	}
	return json_array_size(names) > 0;
}

/* Imports a value of a row by its kind. */
static void import_history_value(struct wandb_items *w, const char *key, json_t *value, int depth)
{
	const char *type = wandb_member_text(value, "_type"), *name;
	char inner[KEY_BYTES];
	json_t *v;

	if (content_is_number(value)) {
		importer_point(w->run, key, find_value_step(w, key), w->wall_s, content_number(value));
		mark_key_seen(w, key, content_number(value));
	} else if (*type) {
		mark_key_seen(w, key, NAN);
		if (!import_media_list(w, key, value, type))
			import_wandb_media(w, key, value, type);
	} else if (json_is_object(value) && depth < DEPTH_MAX) {
		json_object_foreach(value, name, v) {
			snprintf(inner, sizeof(inner), "%.490s.%.490s", key, name);
			import_history_value(w, inner, v, depth + 1);
		}
	} else if (json_is_string(value)) {
		mark_key_seen(w, key, NAN);
		import_history_text(w, key, json_string_value(value));
	} else if (!json_is_null(value)) {
		mark_key_seen(w, key, NAN);
		importer_leave_out(w->run->of, "a list in the history: %.100s", key);
	}
}

/* Keys that W&B adds to every row. */
static bool is_wandb_key(const char *key)
{
	static const char *const keys[] = { "_step", "_runtime", "_timestamp", "_wandb" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(key, keys[i]))
			return true;
	return false;
}

void wandb_row(struct wandb_items *w, json_t *row)
{
	const char *key;
	json_t *value;

	w->row = row;
	json_object_foreach(row, key, value)
		if (!is_wandb_key(key))
			import_history_value(w, key, value, 0);
	w->row = NULL;
}

/* --- params, the summary ---------------------------------------------------------------------------------------- */

static void import_config_value(struct wandb_items *w, const char *key, json_t *value, int depth)
{
	char inner[KEY_BYTES];
	const char *name;
	json_t *v;

	if (json_is_object(value) && json_object_size(value) && depth < DEPTH_MAX) {
		json_object_foreach(value, name, v) {
			snprintf(inner, sizeof(inner), "%.490s.%.490s", key, name);
			import_config_value(w, inner, v, depth + 1);
		}
		return;
	}
	importer_param_json(w->run, key, value);
}

void wandb_params(struct wandb_items *w, json_t *config)
{
	const char *key;
	json_t *value;

	json_object_foreach(config, key, value)
		if (strcmp(key, "_wandb"))
			import_config_value(w, key, value, 0);
}

/* Returns true for the extremes of a key with rows that W&B keeps after define_metric: the store computes them. */
static bool is_known_extreme(const struct wandb_items *w, const char *key, const char *name)
{
	return (!strcmp(name, "min") || !strcmp(name, "max")) && map_get(w->seen, key, strlen(key));
}

/* A final value of a key with rows is new only if a program set it: it then differs from the last row. */
static void import_set_final(struct wandb_items *w, const char *key, json_t *value, const struct wandb_last *last)
{
	char name[KEY_BYTES], *text;

	if (!content_is_number(value) || !isfinite(last->value) || content_number(value) == last->value)
		return;
	snprintf(name, sizeof(name), "summary.%.900s", key);
	text = content_text(value);
	importer_tag(w->run, name, text ? text : "");
	free(text);
}

/* Imports a value of the summary: of a key without rows a point at the last step, or a tag. */
static void import_final(struct wandb_items *w, const char *key, json_t *value, int depth)
{
	const struct wandb_last *last = map_get(w->seen, key, strlen(key));
	char inner[KEY_BYTES];
	const char *name;
	json_t *v;

	if (json_is_object(value) && !json_object_get(value, "_type") && depth < DEPTH_MAX) {
		json_object_foreach(value, name, v) {
			snprintf(inner, sizeof(inner), "%.490s.%.490s", key, name);
			if (!is_known_extreme(w, key, name))
				import_final(w, inner, v, depth + 1);
		}
	} else if (last) {
		import_set_final(w, key, value, last);
	} else if (content_is_number(value)) {
		importer_final(w->run, key, w->step, w->wall_s, content_number(value));
	} else if (json_is_string(value)) {
		importer_tag(w->run, key, json_string_value(value));
	} else if (!json_is_object(value) && !json_is_null(value)) {
		importer_leave_out(w->run->of, "a list in the summary: %.100s", key);
	}
}

void wandb_finals(struct wandb_items *w, json_t *summary)
{
	const char *key;
	json_t *value;

	json_object_foreach(summary, key, value)
		if (!is_wandb_key(key))
			import_final(w, key, value, 0);
}
