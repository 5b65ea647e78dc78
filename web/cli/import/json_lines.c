/* json_lines.c: reads the lines one by one; each kind of line has its function, of one table. */
#include "web/cli/import/json_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/file_map.h"
#include "tracker/event/event_console.h"
#include "web/cli/import/content.h"

#define HEAD "dptrack_runs"
#define CONTENT_MAX ((size_t)64 << 20)
#define PIXELS_MAX 1000000

struct lines {
	struct importer *b;
	struct importer_run run;
	bool begun, deleted;
};

static int wrong(struct err *err, const char *wanted)
{
	return err_set(err, ERR_CORRUPT, "%s is needed there", wanted);
}

/* --- a run ------------------------------------------------------------------------------------------------------ */

static int take_run(struct lines *l, json_t *value, struct err *err)
{
	const char *id, *experiment, *name;
	double start_s;
	int rc;

	if (l->begun)
		return err_set(err, ERR_CORRUPT, "the run before has no \"end\"");
	if (json_unpack(value, "{s:s, s:s, s:s, s:F}", "id", &id, "experiment", &experiment, "name", &name, "start",
			&start_s))
		return wrong(err, "{\"id\", \"experiment\", \"name\", \"start\"}");
	rc = importer_run_begin(&l->run, l->b, id, experiment, name, start_s, err);
	if (rc)
		importer_run_drop(&l->run);
	l->begun = !rc;
	l->deleted = false;
	return rc;
}

static bool find_status(const char *word, enum event_status *ret)
{
	for (int i = 0; event_status_name(i); i++)
		if (!strcmp(word, event_status_name(i))) {
			*ret = i;
			return true;
		}
	return false;
}

static int take_end(struct lines *l, json_t *value, struct err *err)
{
	enum event_status status;
	const char *word;
	double at;
	int rc;

	if (json_unpack(value, "[s, F!]", &word, &at) || !find_status(word, &status))
		return wrong(err, "[a run's status, its time]");
	if (status != EVENT_RUNNING)
		importer_status(&l->run, status, at);
	l->begun = false;
	rc = importer_run_end(&l->run, err);
	return rc || !l->deleted ? rc : importer_delete_run(l->b, l->run.id, err);
}

static int take_deleted(struct lines *l, json_t *value, struct err *err)
{
	(void)err;
	l->deleted = json_is_true(value);
	return 0;
}

/* --- what it says of itself ------------------------------------------------------------------------------------- */

typedef void put_pair(struct importer_run *r, const char *key, const char *text);

static int take_pair(struct lines *l, json_t *value, put_pair *put, struct err *err)
{
	const char *key;
	json_t *second;
	char *text;

	if (json_unpack(value, "[s, o!]", &key, &second))
		return wrong(err, "[name, value]");
	text = content_text(second);
	if (!text)
		return err_set(err, ERR_NOMEM, "out of memory");
	put(&l->run, key, text);
	free(text);
	return 0;
}

static int take_note(struct lines *l, json_t *value, struct err *err)
{
	if (!json_is_string(value))
		return wrong(err, "a text");
	importer_note(&l->run, json_string_value(value));
	return 0;
}

static int take_left_out(struct lines *l, json_t *value, struct err *err)
{
	if (!json_is_string(value))
		return wrong(err, "a text");
	importer_leave_out(l->b, "%s", json_string_value(value));
	return 0;
}

static int take_file(struct lines *l, json_t *value, struct err *err)
{
	const char *path, *from;

	if (json_unpack(value, "[s, s!]", &path, &from))
		return wrong(err, "[path in the run, path on this machine]");
	return importer_files(l->b, l->run.id, path, from, err);
}

/* --- what it measured, showed and printed ----------------------------------------------------------------------- */

typedef void put_number(struct importer_run *r, const char *key, int64_t step, double wall_s, double value);

static int take_number(struct lines *l, json_t *row, put_number *put, struct err *err)
{
	const char *key;
	json_int_t step;
	json_t *number;
	double at;

	if (json_unpack(row, "[s, I, F, o!]", &key, &step, &at, &number) || !content_is_number(number))
		return wrong(err, "[key, step, time, number]");
	put(&l->run, key, step, at, content_number(number));
	return 0;
}

static int take_points(struct lines *l, json_t *value, struct err *err)
{
	json_t *row;
	int rc = json_is_array(value) ? 0 : wrong(err, "a list of points");
	size_t i;

	json_array_foreach(value, i, row)
		if (!rc)
			rc = take_number(l, row, importer_point, err);
	return rc;
}

static int take_final(struct lines *l, json_t *value, struct err *err)
{
	return take_number(l, value, importer_final, err);
}

static int take_console(struct lines *l, json_t *value, struct err *err)
{
	struct console_line line = { 0 };
	struct buf lines;
	const char *text;
	double at;

	if (json_unpack(value, "[i, F, s%!]", &line.stream, &at, &text, &line.text.len) || line.stream < 1 ||
	    line.stream > 2)
		return wrong(err, "[1 or 2, time, line]");
	line.text.at = text;
	buf_init(&lines, CONTENT_MAX);
	console_add(&lines, &line);
	importer_lines(&l->run, at, &lines);
	buf_done(&lines);
	return 0;
}

typedef bool add_content(struct buf *to, json_t *told);

static bool add_image(struct buf *to, json_t *told)
{
	struct file_map map = { 0 };
	const char *path;
	int width, height;

	if (json_unpack(told, "{s:s, s:i, s:i}", "file", &path, "width", &width, "height", &height) || width < 1 ||
	    height < 1 || width > PIXELS_MAX || height > PIXELS_MAX || file_map_open(&map, path, NULL))
		return false;
	media_add_image(to, (struct event_span){ map.bytes, map.bytes + map.n }, (unsigned)width, (unsigned)height);
	file_map_close(&map);
	return true;
}

static bool add_audio(struct buf *to, json_t *told)
{
	struct file_map map = { 0 };
	struct event_text type;
	const char *path;

	if (json_unpack(told, "{s:s, s:s%}", "file", &path, "type", &type.at, &type.len) ||
	    file_map_open(&map, path, NULL))
		return false;
	media_add_audio(to, (struct event_span){ map.bytes, map.bytes + map.n }, type);
	file_map_close(&map);
	return true;
}

static bool add_text(struct buf *to, json_t *told)
{
	struct event_text text;

	if (json_unpack(told, "{s:s%}", "text", &text.at, &text.len))
		return false;
	media_add_text(to, text);
	return true;
}

static int take_media(struct lines *l, json_t *value, add_content *add, struct err *err)
{
	struct buf content;
	const char *key;
	json_int_t step;
	json_t *told;
	double at;

	if (json_unpack(value, "[s, I, F, o!]", &key, &step, &at, &told))
		return wrong(err, "[key, step, time, content]");
	buf_init(&content, CONTENT_MAX);
	if (add(&content, told))
		importer_media(&l->run, key, step, at, &content);
	else
		importer_leave_out(l->b, "a picture, sound, histogram, text or table that cannot be read: %.100s", key);
	buf_done(&content);
	return 0;
}

/* --- lines ------------------------------------------------------------------------------------------------------ */

/* One of the three says what becomes of a line's value. */
struct kind {
	const char *name;
	int (*take)(struct lines *l, json_t *value, struct err *err);
	put_pair *put;
	add_content *add;
};

static const struct kind kinds[] = {
	{ "points", .take = take_points },	{ "run", .take = take_run },
	{ "end", .take = take_end },		{ "param", .put = importer_param },
	{ "tag", .put = importer_tag },		{ "environment", .put = importer_env },
	{ "code", .put = importer_code },		{ "note", .take = take_note },
	{ "final", .take = take_final },	{ "image", .add = add_image },
	{ "audio", .add = add_audio },		{ "text", .add = add_text },
	{ "histogram", .add = content_add_histogram }, { "table", .add = content_add_table },
	{ "console", .take = take_console },	{ "file", .take = take_file },
	{ "deleted", .take = take_deleted },	{ "left_out", .take = take_left_out },
};

static int take_kind(struct lines *l, const struct kind *k, json_t *value, struct err *err)
{
	if (!l->begun && k->take != take_run && k->take != take_left_out)
		return err_set(err, ERR_CORRUPT, "\"%s\" belongs to a run, and none has begun", k->name);
	if (k->put)
		return take_pair(l, value, k->put, err);
	return k->add ? take_media(l, value, k->add, err) : k->take(l, value, err);
}

static int take_object(struct lines *l, json_t *object, struct err *err)
{
	const char *name = json_object_iter_key(json_object_iter(object));

	if (json_object_size(object) != 1)
		return wrong(err, "an object with one member");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			return take_kind(l, &kinds[i], json_object_get(object, name), err);
	return err_set(err, ERR_CORRUPT, "\"%.40s\" is no kind of line", name);
}

static int take_line(struct lines *l, const char *text, size_t n, struct err *err)
{
	json_error_t why;
	json_t *object = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
	int rc = object ? take_object(l, object, err) : err_set(err, ERR_CORRUPT, "no JSON: %s", why.text);

	json_decref(object);
	return rc;
}

static bool is_head(const char *line, size_t n)
{
	json_t *head = json_loadb(line, n, 0, NULL);
	bool is = json_integer_value(json_object_get(head, HEAD)) == 1;

	json_decref(head);
	return is;
}

int json_lines_take(struct importer *b, FILE *f, struct err *err)
{
	struct lines l = { .b = b };
	uint64_t number = 1;
	char *line = NULL;
	size_t room = 0;
	ssize_t n = getline(&line, &room, f);
	int rc = 0;

	if (n < 0 || !is_head(line, (size_t)n))
		rc = err_set(err, ERR_USAGE, "no runs told as lines: the first is not {\"" HEAD "\": 1}");
	while (!rc && (n = getline(&line, &room, f)) >= 0) {
		number++;
		rc = take_line(&l, line, (size_t)n, err);
		if (rc == ERR_CORRUPT)
			err_prefix(err, "line %" PRIu64, number);
	}
	if (!rc && ferror(f))
		rc = err_set_errno(err, errno, "cannot read line %" PRIu64, number + 1);
	if (!rc && l.begun)
		rc = err_set(err, ERR_CORRUPT, "the last run, %.100s, has no \"end\": it is not taken", l.run.name);
	if (l.begun)
		importer_run_drop(&l.run);
	free(line);
	return rc;
}

bool json_lines_is(const char *path)
{
	char line[64];
	FILE *f = fopen(path, "rbe");
	bool is = f && fgets(line, sizeof(line), f) && is_head(line, strlen(line));

	if (f)
		fclose(f);
	return is;
}

int json_lines_read(struct importer *b, const char *path, struct err *err)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "rbe") : stdin;
	int rc;

	if (!f)
		return err_set_errno(err, errno, "cannot read %s", path);
	rc = json_lines_take(b, f, err);
	if (f != stdin)
		fclose(f);
	return rc;
}
