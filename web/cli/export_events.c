/* export_events.c: reads a run's points as JSON lines, a line at a time, and writes records. */
#include "web/cli/export_events.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tracker/event/encode.h"
#include "tracker/event/limits.h"
#include "web/cli/cli.h"

#define LINE_MAX_BYTES ((size_t)1 << 20)
#define FLUSH_BYTES ((size_t)1 << 18)
#define PARAMS_MAX 1000

struct writer {
	const char *dir, *name; /* folder of the run; name of its files */
	struct buf line, out;
	FILE *file;
	int rank; /* of the open file */
	double start_s;
	json_t *run;
	struct err *err;
};

static int flush_out(struct writer *w)
{
	bool ok = w->file && !buf_failed(&w->out) && fwrite(w->out.data ? w->out.data : "", 1, w->out.len, w->file) == w->out.len;

	buf_reset(&w->out);
	return ok ? 0 : err_set_errno(w->err, errno, "cannot write the event files below %s", w->dir);
}

static int close_file(struct writer *w)
{
	int rc;

	if (!w->file)
		return 0;
	rc = flush_out(w);
	if (fclose(w->file) && !rc)
		rc = err_set_errno(w->err, errno, "cannot write the event files below %s", w->dir);
	w->file = NULL;
	return rc;
}

static int make_path(char *path, struct err *err)
{
	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		if (mkdir(path, 0777) && errno != EEXIST)
			return err_set_errno(err, errno, "cannot make the folder %s", path);
		*p = '/';
	}
	return 0;
}

/* The file of a rank's series; EVENT_RANK_RUN: of the run's own. */
static int open_file(struct writer *w, int rank)
{
	char path[4096];
	int rc = close_file(w);

	if (rank == EVENT_RANK_RUN)
		snprintf(path, sizeof(path), "%s/%s", w->dir, w->name);
	else
		snprintf(path, sizeof(path), "%s/rank-%d/%s", w->dir, rank, w->name);
	if (!rc)
		rc = make_path(path, w->err);
	if (rc)
		return rc;
	w->file = fopen(path, rank == w->rank ? "abe" : "wbe");
	if (!w->file)
		return err_set_errno(w->err, errno, "cannot write %s", path);
	w->rank = rank;
	encode_file_version(&w->out, w->start_s);
	return 0;
}

static struct event_text text_of(const char *s)
{
	return (struct event_text){ s, strlen(s) };
}

static double number_of(json_t *v)
{
	const char *text = json_string_value(v);

	if (!text)
		return json_number_value(v);
	return !strcmp(text, "Infinity") ? INFINITY : !strcmp(text, "-Infinity") ? -INFINITY : NAN;
}

static int take_point(struct writer *w, json_t *row)
{
	int rank = (int)json_integer_value(json_object_get(row, "rank")), rc = 0;
	struct encode_scalar s = { .key = text_of(cli_text(row, "key")),
				   .step = json_integer_value(json_object_get(row, "step")),
				   .wall_time = number_of(json_object_get(row, "wall_time")),
				   .value = number_of(json_object_get(row, "value")),
				   .rank = EVENT_RANK_RUN };

	if (!w->file || rank != w->rank)
		rc = open_file(w, rank);
	if (rc)
		return rc;
	encode_scalar(&w->out, &s);
	return w->out.len > FLUSH_BYTES ? flush_out(w) : 0;
}

static int take_line(struct writer *w)
{
	json_error_t jerr;
	json_t *row = json_loadb(w->line.data, w->line.len, 0, &jerr);
	int rc = row ? take_point(w, row) : err_set(w->err, ERR_PEER, "a point of the reply is no JSON: %s", jerr.text);

	json_decref(row);
	buf_reset(&w->line);
	return rc;
}

static int take(void *arg, const char *bytes, size_t n, struct err *err)
{
	struct writer *w = arg;
	int rc = 0;

	while (!rc && n) {
		const char *end = memchr(bytes, '\n', n);
		size_t part = end ? (size_t)(end - bytes) : n;

		buf_add(&w->line, bytes, part);
		if (buf_failed(&w->line))
			return err_set(err, ERR_PEER, "a point of the reply is longer than %zu bytes", LINE_MAX_BYTES);
		if (end && w->line.len)
			rc = take_line(w);
		part += end != NULL;
		bytes += part;
		n -= part;
	}
	return rc;
}

static enum event_status status_of(const char *name)
{
	for (int s = EVENT_RUNNING; s <= EVENT_SCHEDULED; s++)
		if (!strcmp(name, event_status_name((enum event_status)s)))
			return (enum event_status)s;
	return EVENT_RUNNING;
}

/* What stands before the points: params and notes; and behind them: how it ended. */
static void describe(struct writer *w)
{
	json_t *params = json_object_get(w->run, "params"), *value;
	struct encode_param list[PARAMS_MAX];
	const char *key, *notes = cli_text(w->run, "notes");
	size_t n = 0;

	json_object_foreach(params, key, value) {
		if (n == PARAMS_MAX)
			break;
		list[n] = (struct encode_param){ .key = text_of(key), .type = EVENT_TYPE_TEXT };
		if (json_is_number(value)) {
			list[n].type = EVENT_TYPE_F64;
			list[n].value = json_number_value(value);
		} else {
			list[n].text = text_of(json_string_value(value) ? json_string_value(value) : "");
		}
		n++;
	}
	for (size_t i = 0; i < n; i++)
		encode_param(&w->out, w->start_s, &list[i]);
	if (n) /* for TensorBoard's table */
		encode_hparams_start(&w->out, w->start_s, list, n);
	if (*notes)
		encode_note(&w->out, w->start_s, text_of(notes));
}

static void plain(struct buf *to, const char *text)
{
	for (; *text; text++)
		buf_addc(to, strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *text) ? *text : '_');
}

static int write_run(struct writer *w, struct source *s, const char *target)
{
	enum event_status status = status_of(cli_text(w->run, "status"));
	double end_s = number_of(json_object_get(w->run, "end_time")) / 1e3;
	int rc = open_file(w, EVENT_RANK_RUN);

	if (rc)
		return rc;
	describe(w);
	rc = source_send(s, &(struct local_opts){ .method = "GET", .target = target }, &(struct local_sink){ take, w }, w->err);
	if (rc || status == EVENT_RUNNING || status == EVENT_SCHEDULED || w->rank != EVENT_RANK_RUN)
		return rc;
	encode_status(&w->out, end_s > 0 ? end_s : w->start_s, status, text_of(""));
	encode_hparams_end(&w->out, end_s > 0 ? end_s : w->start_s, status);
	return 0;
}

int export_events(struct source *s, const char *dir, const char *id, const char *segments, struct err *err)
{
	struct writer w = { .rank = EVENT_RANK_LAUNCHER, .err = err };
	struct buf target, folder, name;
	int rc;

	buf_init(&target, 4096);
	buf_init(&folder, 4096);
	buf_init(&name, 256);
	buf_init(&w.line, LINE_MAX_BYTES);
	buf_init(&w.out, 4 * FLUSH_BYTES);
	buf_addf(&target, "/api/v1/runs/%s", id);
	rc = cli_get_json(s, target.data, &w.run, err);
	if (!rc) {
		w.start_s = number_of(json_object_get(w.run, "start_time")) / 1e3;
		buf_addf(&folder, "%s/", dir);
		plain(&folder, cli_text(w.run, "experiment"));
		buf_addc(&folder, '/');
		plain(&folder, cli_text(w.run, "name"));
		buf_addf(&folder, "-%.8s", id);
		buf_addf(&name, "events.out.tfevents.%lld.dptrack.0.0", (long long)w.start_s);
		buf_reset(&target);
		buf_addf(&target, "/api/v1/export/series.jsonl?run=%s", id);
		if (segments)
			source_arg(&target, "segments", segments);
		w.dir = folder.data;
		w.name = name.data;
		rc = buf_failed(&folder) ? err_set(err, ERR_LIMIT, "the run's names are too long for a path") :
					   write_run(&w, s, target.data);
	}
	if (close_file(&w) && !rc)
		rc = err->code;
	json_decref(w.run);
	buf_done(&target);
	buf_done(&folder);
	buf_done(&name);
	buf_done(&w.line);
	buf_done(&w.out);
	return rc;
}
