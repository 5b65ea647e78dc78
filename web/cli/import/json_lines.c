/* SPDX-License-Identifier: Apache-2.0 */
/* json_lines.c: imports runs that a program writes as lines of JSON, one object with one member each. A table has a
 * function for each kind of line; docs/reference/json-lines.md describes them. Points and media are in the order of
 * time, so that a repeated import adds nothing, or only what is new. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "tracker/base/file.h"
#include "tracker/base/utf8.h"
#include "web/cli/import/importer.h"

#define HEAD "dptrack_runs"
#define CONTENT_MAX ((size_t)64 << 20)
#define PIXELS_MAX 1000000

struct line_reader {
	struct importer *b;
	struct importer_run run;
	bool begun, deleted;
};

static int fail_line(struct err *err, const char *wanted)
{
	return err_set(err, ERR_CORRUPT, "expected %s", wanted);
}

/* --- a run ------------------------------------------------------------------------------------------------------ */

/* Begins a run, or a further part of one that was resumed. */
static int begin_line_run(struct line_reader *l, json_t *value, struct err *err)
{
	struct importer_run_head head;
	const char *part = "";
	json_int_t first_step = INT64_MAX / 2; /* hides no point of older segments */
	int segment = 0, rc;

	if (l->begun)
		return err_set(err, ERR_CORRUPT, "the previous run has no \"end\"");
	if (json_unpack(value, "{s:s, s:s, s:s, s:F, s?s, s?i, s?I}", "id", &head.id, "experiment", &head.experiment,
			"name", &head.name, "start", &head.start_s, "part", &part, "segment", &segment, "first_step",
			&first_step) ||
	    segment < 0)
		return fail_line(err, "{\"id\", \"experiment\", \"name\", \"start\"}");
	rc = importer_run_begin(&l->run, l->b, &head, err);
	if (rc)
		importer_run_drop(&l->run);
	l->run.part = arena_strdup(l->b->kept, part);
	l->run.segment = segment;
	l->run.first_step = segment ? first_step : 0;
	l->begun = !rc;
	l->deleted = false;
	return rc;
}

static bool parse_line_status(const char *word, enum event_status *ret)
{
	for (int i = 0; event_status_name(i); i++)
		if (!strcmp(word, event_status_name(i))) {
			*ret = i;
			return true;
		}
	return false;
}

static int end_line_run(struct line_reader *l, json_t *value, struct err *err)
{
	const char *word, *reason = json_string_value(json_array_get(value, 2));
	enum event_status status;
	double at;
	int rc;

	if (json_unpack(value, "[s, F]", &word, &at) || !parse_line_status(word, &status))
		return fail_line(err, "[a run's status, its time]");
	if (status != EVENT_RUNNING)
		importer_status(&l->run, status, at, reason ? reason : "");
	l->begun = false;
	rc = importer_run_end(&l->run, err);
	return rc || !l->deleted ? rc : importer_delete_run(l->b, l->run.id, err);
}

static int read_deleted_line(struct line_reader *l, json_t *value, struct err *err)
{
	(void)err;
	l->deleted = json_is_true(value);
	return 0;
}

/* --- description -------------------------------------------------------------------------------------------------- */

typedef void put_pair(struct importer_run *r, const char *key, const char *text);

static int read_pair_line(struct line_reader *l, json_t *value, put_pair *put, struct err *err)
{
	const char *key;
	json_t *second;
	char *text;

	if (json_unpack(value, "[s, o!]", &key, &second))
		return fail_line(err, "[name, value]");
	text = content_text(second);
	put(&l->run, key, text);
	free(text);
	return 0;
}

static int read_param_line(struct line_reader *l, json_t *value, struct err *err)
{
	const char *key;
	json_t *second;

	if (json_unpack(value, "[s, o!]", &key, &second))
		return fail_line(err, "[name, value]");
	importer_param_json(&l->run, key, second);
	return 0;
}

static int read_name_line(struct line_reader *l, json_t *value, struct err *err)
{
	if (!json_is_string(value))
		return fail_line(err, "a string");
	importer_run_rename(&l->run, json_string_value(value));
	return 0;
}

static int read_note_line(struct line_reader *l, json_t *value, struct err *err)
{
	if (!json_is_string(value))
		return fail_line(err, "a string");
	importer_note(&l->run, json_string_value(value));
	return 0;
}

static int read_left_out_line(struct line_reader *l, json_t *value, struct err *err)
{
	if (!json_is_string(value))
		return fail_line(err, "a string");
	importer_leave_out(l->b, "%s", json_string_value(value));
	return 0;
}

static int read_file_line(struct line_reader *l, json_t *value, struct err *err)
{
	const char *path, *from;

	if (json_unpack(value, "[s, s!]", &path, &from))
		return fail_line(err, "[path in the run, path on this machine]");
	return importer_files(l->b, l->run.id, path, from, err);
}

/* --- inputs and outputs, what belongs to no run ------------------------------------------------------------------- */

static bool has_text(json_t *object, const char *key)
{
	return *cli_text(object, key);
}

static int read_input_line(struct line_reader *l, json_t *value, struct err *err)
{
	return has_text(value, "name") ? model_line_input(l->b, l->run.id, value, err)
				       : fail_line(err, "a data set with a name");
}

static int read_output_line(struct line_reader *l, json_t *value, struct err *err)
{
	const char *model;
	json_int_t step;

	if (json_unpack(value, "[s, I!]", &model, &step))
		return fail_line(err, "[id of a logged model, step]");
	return model_line_output(l->b, l->run.id, model, step, err);
}

static int read_experiment_line(struct line_reader *l, json_t *value, struct err *err)
{
	return has_text(value, "name") ? model_line_experiment(l->b, value, err)
				       : fail_line(err, "an experiment with a name");
}

static int read_logged_model_line(struct line_reader *l, json_t *value, struct err *err)
{
	return has_text(value, "model_id") && has_text(value, "experiment")
		       ? model_line_logged(l->b, value, err)
		       : fail_line(err, "a logged model with model_id and experiment");
}

static int read_registered_model_line(struct line_reader *l, json_t *value, struct err *err)
{
	return has_text(value, "name") ? model_line_registered(l->b, value, err)
				       : fail_line(err, "a registered model with a name");
}

/* --- measurements, media, console --------------------------------------------------------------------------------- */

typedef void put_number(struct importer_run *r, const char *key, int64_t step, double wall_s, double value);

static int read_number_row(struct line_reader *l, json_t *row, put_number *put, struct err *err)
{
	const char *key;
	json_int_t step;
	json_t *number;
	double at;

	if (json_unpack(row, "[s, I, F, o!]", &key, &step, &at, &number) || !content_is_number(number))
		return fail_line(err, "[key, step, time, number]");
	put(&l->run, key, step, at, content_number(number));
	return 0;
}

static int read_points_line(struct line_reader *l, json_t *value, struct err *err)
{
	json_t *row;
	int rc = json_is_array(value) ? 0 : fail_line(err, "a list of points");
	size_t i;

	json_array_foreach(value, i, row)
		if (!rc)
			rc = read_number_row(l, row, importer_point, err);
	return rc;
}

static int read_final_line(struct line_reader *l, json_t *value, struct err *err)
{
	return read_number_row(l, value, importer_final, err);
}

static int read_console_line(struct line_reader *l, json_t *value, struct err *err)
{
	struct console_line line = { 0 };
	struct buf lines;
	const char *text;
	double at;

	if (json_unpack(value, "[i, F, s%]", &line.stream, &at, &text, &line.text.len) || line.stream < 1 ||
	    line.stream > 2)
		return fail_line(err, "[1 or 2, time, line]");
	line.text.at = text;
	line.again = json_is_true(json_array_get(value, 3));
	buf_init(&lines, CONTENT_MAX);
	console_add(&lines, &line);
	importer_lines(&l->run, at, &lines);
	buf_done(&lines);
	return 0;
}

static int read_alert_line(struct line_reader *l, json_t *value, struct err *err)
{
	static const char *const levels[] = { "INFO", "WARN", "ERROR" };
	struct encode_alert a = { 0 };
	const char *level;
	json_int_t step;
	double at;

	if (json_unpack(value, "[s, I, F, s%, s%!]", &level, &step, &at, &a.title.at, &a.title.len, &a.text.at,
			&a.text.len))
		return fail_line(err, "[level, step, time, title, text]");
	a.step = step;
	while (a.level < 3 && strcmp(levels[a.level], level))
		a.level++;
	if (a.level++ == 3)
		return fail_line(err, "a level INFO, WARN or ERROR");
	importer_alert(&l->run, at, &a);
	return 0;
}

typedef bool add_content(struct buf *to, json_t *item);
typedef bool add_file(struct buf *to, json_t *item, struct event_span file);

static bool add_image_content(struct buf *to, json_t *item, struct event_span file)
{
	int width, height;

	if (json_unpack(item, "{s:i, s:i}", "width", &width, "height", &height) || width < 1 || height < 1 ||
	    width > PIXELS_MAX || height > PIXELS_MAX)
		return false;
	media_add_image(to, file, (unsigned)width, (unsigned)height);
	return true;
}

static bool add_audio_content(struct buf *to, json_t *item, struct event_span file)
{
	struct event_text type;

	if (json_unpack(item, "{s:s%}", "type", &type.at, &type.len))
		return false;
	media_add_audio(to, file, type);
	return true;
}

static bool add_text_content(struct buf *to, json_t *item)
{
	struct event_text text;

	if (json_unpack(item, "{s:s%}", "text", &text.at, &text.len))
		return false;
	media_add_text(to, text);
	return true;
}

/* Exactly one of the four functions is set. */
struct line_kind {
	const char *name;
	int (*take)(struct line_reader *l, json_t *value, struct err *err);
	put_pair *put;
	add_content *add;
	add_file *add_file;
	bool anywhere; /* also where no run has begun */
};

/* Maps the file of an image or audio clip and adds it. */
static bool add_media_file(const struct line_reader *l, add_file *add, struct buf *to, json_t *item, struct err *err)
{
	const char *path = json_string_value(json_object_get(item, "file"));
	struct file_map map;
	bool added;

	if (!path || importer_map(l->b, &map, path, err))
		return false;
	added = add(to, item, (struct event_span){ map.bytes, map.bytes + map.n });
	file_map_close(&map);
	return added;
}

static int read_media_line(struct line_reader *l, const struct line_kind *k, json_t *value, struct err *err)
{
	struct err why = ERR_INIT;
	struct buf content;
	const char *key;
	json_int_t step;
	json_t *item;
	double at;

	if (json_unpack(value, "[s, I, F, o!]", &key, &step, &at, &item))
		return fail_line(err, "[key, step, time, content]");
	buf_init(&content, CONTENT_MAX);
	if (k->add ? k->add(&content, item) : add_media_file(l, k->add_file, &content, item, &why))
		importer_media(&l->run, key, step, at, &content);
	else
		importer_leave_out(l->b, "an unreadable image, audio clip, histogram, text or table: %.100s%s%s", key,
				   *why.text ? ": " : "", why.text);
	buf_done(&content);
	return 0;
}

/* --- lines ------------------------------------------------------------------------------------------------------ */

static const struct line_kind kinds[] = {
	{ "points", .take = read_points_line },
	{ "run", .take = begin_line_run, .anywhere = true },
	{ "end", .take = end_line_run },
	{ "name", .take = read_name_line },
	{ "param", .take = read_param_line },
	{ "tag", .put = importer_tag },
	{ "environment", .put = importer_env },
	{ "code", .put = importer_code },
	{ "note", .take = read_note_line },
	{ "final", .take = read_final_line },
	{ "image", .add_file = add_image_content },
	{ "audio", .add_file = add_audio_content },
	{ "text", .add = add_text_content },
	{ "histogram", .add = content_add_histogram },
	{ "table", .add = content_add_table },
	{ "console", .take = read_console_line },
	{ "alert", .take = read_alert_line },
	{ "file", .take = read_file_line },
	{ "input", .take = read_input_line },
	{ "output", .take = read_output_line },
	{ "deleted", .take = read_deleted_line },
	{ "experiment", .take = read_experiment_line, .anywhere = true },
	{ "logged_model", .take = read_logged_model_line, .anywhere = true },
	{ "registered_model", .take = read_registered_model_line, .anywhere = true },
	{ "left_out", .take = read_left_out_line, .anywhere = true },
};

static int dispatch_line(struct line_reader *l, const struct line_kind *k, json_t *value, struct err *err)
{
	if (!l->begun && !k->anywhere)
		return err_set(err, ERR_CORRUPT, "\"%s\" needs a run, but none has begun", k->name);
	if (k->put)
		return read_pair_line(l, value, k->put, err);
	return k->take ? k->take(l, value, err) : read_media_line(l, k, value, err);
}

static int read_line_object(struct line_reader *l, json_t *object, struct err *err)
{
	const char *name = json_object_iter_key(json_object_iter(object));

	if (json_object_size(object) != 1)
		return fail_line(err, "an object with one member");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			return dispatch_line(l, &kinds[i], json_object_get(object, name), err);
	return err_set(err, ERR_CORRUPT, "\"%.40s\": unknown kind of line", name);
}

static int read_run_line(struct line_reader *l, const char *text, size_t n, struct err *err)
{
	json_error_t why;
	json_t *object = json_lenient(text, n, JSON_REJECT_DUPLICATES, &why);
	int rc = object ? read_line_object(l, object, err)
			: err_set(err, ERR_CORRUPT, "JSON, column %d: %s", why.column, json_error_reason(&why));

	json_decref(object);
	return rc;
}

/* called: name of the source, for people; unchanged if the line has none. */
static bool read_head_line(const char *line, size_t n, char *called, size_t room)
{
	json_t *head = json_lenient(line, n, 0, NULL);
	bool is = json_integer_value(json_object_get(head, HEAD)) == 1;

	if (is && *cli_text(head, "source"))
		utf8_escape(called, room, cli_text(head, "source"));
	json_decref(head);
	return is;
}

int json_lines_take(struct importer *b, FILE *f, struct err *err)
{
	struct line_reader l = { .b = b };
	uint64_t number = 1;
	char *line = NULL;
	size_t room = 0;
	ssize_t n = getline(&line, &room, f);
	int rc = 0;

	if (n < 0 || !read_head_line(line, (size_t)n, b->called, sizeof(b->called)))
		rc = err_set(err, ERR_USAGE, "not a file of runs: the first line is not {\"" HEAD "\": 1}: see "
				"docs/reference/json-lines.md");
	while (!rc && (n = getline(&line, &room, f)) >= 0) {
		number++;
		rc = read_run_line(&l, line, (size_t)n, err);
		if (rc == ERR_CORRUPT)
			err_prefix(err, "line %" PRIu64, number);
	}
	if (!rc && ferror(f))
		rc = err_set_errno(err, errno, "cannot read line %" PRIu64, number + 1);
	if (!rc && l.begun)
		rc = err_set(err, ERR_CORRUPT, "the last run, %.100s, has no \"end\": it is not imported", l.run.name);
	if (l.begun)
		importer_run_drop(&l.run);
	free(line);
	return rc;
}

bool json_lines_is(const char *path)
{
	char line[400], called[300];
	FILE *f = fopen(path, "rbe");
	bool is = f && fgets(line, sizeof(line), f) && read_head_line(line, strlen(line), called, sizeof(called));

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
