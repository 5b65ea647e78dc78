/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_media.c: images, tables, sounds and documents of the history: their rows name files that are uploaded on their
 * own, before or after the row. The text "pending" of a run keeps what each expected file is; when row and file are
 * there, the file becomes media of the run. */
#include "web/api/wandb/wandb.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/thread.h"
#include "tracker/mem/mem.h"
#include "web/api/blob.h"
#include "web/store/files/artifacts.h"

/* Stores the files that are there, one after the other, then calls `then`. */
struct settle {
	struct call *c;
	struct wandb_job job;
	const char *path; /* the file that is read */
	const char *place;
	struct buf bytes; /* failed: too large */
	int rc;
	size_t at;  /* expected files that were looked at */
	enum call_next (*then)(struct call *c);
};

static enum call_next settle_next(struct call *c);

static struct settle *settle_of(struct call *c)
{
	return wandb_job_of(c)->state;
}

static void drop_settle(void *arg)
{
	struct settle *s = arg;

	buf_done(&s->bytes);
}

/* --- reading a file, on a thread of its own --------------------------------------------------------------------- */

static void *read_file(void *arg)
{
	struct settle *s = arg;

	s->rc = blob_load(s->c, s->place, &s->bytes, NULL);
	call_wake(s->c);
	return NULL;
}

/* --- contents --------------------------------------------------------------------------------------------------- */

static const char *pending_text(json_t *what, const char *key)
{
	const char *text = json_string_value(json_object_get(what, key));

	return text ? text : "";
}

static char *cell_text(json_t *value)
{
	if (json_is_string(value))
		return mem_strdup(json_string_value(value));
	return value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : mem_strdup("");
}

/* {"columns": […], "data": [[…], …]}: the names are the first row. */
static bool add_table(struct buf *to, const struct buf *file)
{
	json_t *table = json_too_much(file->data, file->len) ? NULL : json_lenient(file->data, file->len, 0, NULL);
	json_t *columns = json_object_get(table, "columns"), *data = json_object_get(table, "data");
	size_t width = json_array_size(columns), height = json_array_size(data) + 1, i;
	struct event_text *cells = mem_array(width * height + 1, sizeof(*cells));
	char **texts = mem_array(width * height + 1, sizeof(*texts));

	for (i = 0; i < width * height; i++) {
		texts[i] =
			cell_text(json_array_get(i < width ? columns : json_array_get(data, i / width - 1), i % width));
		cells[i] = wandb_span(texts[i] ? texts[i] : "");
	}
	if (width)
		media_add_table(to, cells, height, width);
	for (i = 0; i < width * height; i++)
		free(texts[i]);
	free(cells);
	free(texts);
	json_decref(table);
	return width > 0;
}

/* A file of text: the JSON of a Plotly figure, or HTML, whose beginning marks it as a document. */
static bool add_document(struct buf *to, const struct buf *file, bool html)
{
	static const char head[] = "<!doctype html><meta charset=\"utf-8\">";
	const char *at = file->data;
	struct buf text;

	while (isspace((unsigned char)*at))
		at++;
	buf_init(&text, CALL_BUFFERED_MAX);
	if (html && strncasecmp(at, "<!doctype", 9) && strncasecmp(at, "<html", 5))
		buf_add(&text, head, sizeof(head) - 1);
	buf_add(&text, file->data, file->len);
	media_add_text(to, (struct event_text){ text.data, text.len });
	buf_done(&text);
	return true;
}

static bool add_content(struct buf *to, json_t *what, const struct buf *file)
{
	const char *type = pending_text(what, "type");
	const unsigned char *at = (const unsigned char *)file->data;
	const struct event_span all = { at, at + file->len };

	if (!strcmp(type, "image-file") || (!strcmp(type, "video-file") && file->len > 3 && !memcmp(at, "GIF8", 4)))
		media_add_image(to, all, (unsigned)json_integer_value(json_object_get(what, "width")),
				(unsigned)json_integer_value(json_object_get(what, "height")));
	else if (!strcmp(type, "video-file"))
		media_add_audio(to, all, wandb_span("video/mp4")); /* its content tells MP4 from WebM */
	else if (!strcmp(type, "audio-file"))
		media_add_audio(to, all, wandb_span("audio/wav"));
	else if (!strcmp(type, "html-file") || !strcmp(type, "plotly-file"))
		return add_document(to, file, !strcmp(type, "html-file"));
	else
		return !strcmp(type, "table-file") && add_table(to, file);
	return true;
}

/* --- the change ------------------------------------------------------------------------------------------------- */

/* Adds the medium of the file that was read, unless another request has stored it, and forgets the file. */
static enum call_next build_media(struct call *c, struct wandb_job *job)
{
	struct settle *s = job->state;
	const struct query_run *run = &job->run.run;
	struct wandb_writer w = { .name = "media", .start_s = clock_wall_s() };
	json_t *pending, *what;
	struct buf content;
	bool added, large;

	w.segment = run->segment_count ? run->segments[run->segment_count - 1].number : 0;
	if (!job->run.found || !wandb_begin(c, job, &w))
		return c->status == 200 ? s->then(c) : CALL_DONE;
	pending = wandb_parse(wandb_text(&job->run, "pending"));
	what = json_object_get(pending, s->path);
	buf_init(&content, CALL_BUFFERED_MAX);
	added = what && !buf_failed(&s->bytes) && s->bytes.len && add_content(&content, what, &s->bytes);
	large = buf_failed(&s->bytes) || buf_failed(&content) || content.len > LIMIT_media_bytes;
	if (what && (large || !added))
		wandb_leave_out(c, job, "'%s': %s %s: it is in Files alone", pending_text(what, "key"), s->path,
				large ? "is larger than 8 MiB" : "cannot be shown");
	if (added && !large) {
		const unsigned char *at = (const unsigned char *)content.data;
		const struct media_place place = { wandb_span(pending_text(what, "key")),
						   json_integer_value(json_object_get(what, "step")),
						   json_number_value(json_object_get(what, "time")), EVENT_RANK_RUN,
						   0 };

		media_encode(&job->records, &place, (struct event_span){ at, at + content.len });
	}
	buf_done(&content);
	if (what) {
		json_object_del(pending, s->path);
		wandb_keep_json(c, job, "pending", json_incref(pending));
	}
	json_decref(pending);
	return wandb_submit(c, job);
}

/* After the read: stores the file, or leaves it for a later request. */
static enum call_next store_media(struct call *c)
{
	struct settle *s = settle_of(c);

	if (s->rc)
		return settle_next(c);
	s->at--; /* it is no longer expected */
	return wandb_change(c, &s->job);
}

/* Looks for the next expected file that is there. */
static enum call_next settle_next(struct call *c)
{
	struct settle *s = settle_of(c);
	struct wandb_run *r = &s->job.run;
	struct artifact_file f;
	json_t *pending, *what;
	const char *path;
	size_t i = 0;

	if (!wandb_find(c, r->entity, r->project, r->name, r))
		return CALL_DONE;
	pending = wandb_parse(wandb_text(r, "pending"));
	s->path = NULL;
	json_object_foreach(pending, path, what) {
		if (i++ < s->at)
			continue;
		s->at = i;
		s->place = artifact_path_ok(path) ? wandb_place(c, &r->run, path) : NULL;
		if (!s->place || artifact_open(c->api->store, s->place, &f, NULL))
			continue;
		if (f.fd >= 0)
			close(f.fd);
		s->path = arena_strdup(c->arena, path);
		break;
	}
	json_decref(pending);
	if (!s->path)
		return s->then(c);
	buf_reset(&s->bytes);
	c->resume = store_media;
	if (!thread_start_detached(read_file, s, 256 << 10))
		return CALL_WAIT;
	return s->then(c);
}

enum call_next wandb_settle(struct call *c, const char *run, enum call_next (*then)(struct call *c))
{
	struct settle *s = arena_alloc(c->arena, sizeof(*s));

	s->c = c;
	s->then = then;
	s->job = (struct wandb_job){ .build = build_media, .then = settle_next, .state = s };
	s->job.run.name = run;
	buf_init(&s->bytes, LIMIT_media_bytes);
	call_defer(c, drop_settle, s);
	*wandb_own(c) = &s->job;
	return settle_next(c);
}
