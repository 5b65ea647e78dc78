/* wandb_items.c: converts W&B's JSON to points, images, histograms, tables, params. */
#include "web/cli/import/wandb_items.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/file.h"
#include "tracker/event/wire.h"
#include "web/cli/import/importer.h"

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
	return !file_map_open(ret, whole, NULL);
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
	if (!strcmp(type, "image-file"))
		media_add_image(to, file, read_pixel_count(value, "width"), read_pixel_count(value, "height"));
	else
		media_add_audio(to, file, (struct event_text){ "audio/wav", 9 });
	file_map_close(&map);
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

static void import_wandb_media(struct wandb_items *w, const char *key, json_t *value, const char *type)
{
	struct buf content;
	bool added = false;

	buf_init(&content, CONTENT_MAX);
	if (!strcmp(type, "image-file") || !strcmp(type, "audio-file"))
		added = add_item_file(w, value, type, &content);
	else if (!strcmp(type, "histogram"))
		added = content_add_histogram(&content, value);
	else if (!strcmp(type, "table-file"))
		added = add_item_table(w, value, &content);
	if (added)
		importer_media(w->run, key, w->step, w->wall_s, &content);
	else
		importer_leave_out(w->run->of, "%.60s of W&B: %.100s", type, key);
	buf_done(&content);
}

static void mark_key_seen(struct wandb_items *w, const char *key)
{
	map_put(w->seen, key, strlen(key));
}

static void import_history_value(struct wandb_items *w, const char *key, json_t *value, int depth)
{
	const char *type = wandb_member_text(value, "_type"), *name;
	char inner[KEY_BYTES];
	json_t *v;

	if (content_is_number(value)) {
		mark_key_seen(w, key);
		importer_point(w->run, key, w->step, w->wall_s, content_number(value));
	} else if (*type) {
		mark_key_seen(w, key);
		import_wandb_media(w, key, value, type);
	} else if (json_is_object(value) && depth < DEPTH_MAX) {
		json_object_foreach(value, name, v) {
			snprintf(inner, sizeof(inner), "%.490s.%.490s", key, name);
			import_history_value(w, inner, v, depth + 1);
		}
	} else if (!json_is_null(value)) {
		mark_key_seen(w, key);
		importer_leave_out(w->run->of, "a text or list in the history: %.100s", key);
	}
}

void wandb_row(struct wandb_items *w, json_t *row)
{
	const char *key;
	json_t *value;

	json_object_foreach(row, key, value)
		if (*key != '_')
			import_history_value(w, key, value, 0);
}

/* --- params, the summary ---------------------------------------------------------------------------------------- */

static void import_config_value(struct wandb_items *w, const char *key, json_t *value, int depth)
{
	char inner[KEY_BYTES], *text;
	const char *name;
	json_t *v;

	if (json_is_object(value) && json_object_size(value) && depth < DEPTH_MAX) {
		json_object_foreach(value, name, v) {
			snprintf(inner, sizeof(inner), "%.490s.%.490s", key, name);
			import_config_value(w, inner, v, depth + 1);
		}
		return;
	}
	text = content_text(value);
	importer_param(w->run, key, text ? text : "");
	free(text);
}

void wandb_params(struct wandb_items *w, json_t *config)
{
	const char *key;
	json_t *value;

	json_object_foreach(config, key, value)
		if (strcmp(key, "_wandb"))
			import_config_value(w, key, value, 0);
}

void wandb_finals(struct wandb_items *w, json_t *summary)
{
	const char *key;
	json_t *value;

	json_object_foreach(summary, key, value) {
		if (*key == '_' || map_get(w->seen, key, strlen(key)))
			continue;
		if (content_is_number(value))
			importer_final(w->run, key, w->step, w->wall_s, content_number(value));
		else if (json_is_string(value))
			importer_tag(w->run, key, json_string_value(value));
		else if (!json_is_object(value))
			importer_leave_out(w->run->of, "a list in the summary: %.100s", key);
	}
}
