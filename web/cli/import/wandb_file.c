/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_file.c: reads the records of a .wandb file (wandb_internal.proto) in the order of the file. Logged values are
 * JSON by path; wandb_items.c converts them to points and media. */
#include "web/cli/import/wandb_file.h"

#include <zlib.h>

#include "tracker/base/utf8.h"
#include "tracker/event/wire.h"

/* --- blocks: fragments of the log format of LevelDB, joined to records ------------------------------------------ */

#define BLOCK_BYTES 32768u
#define PIECE_HEAD_BYTES 7u
#define RECORD_MAX ((size_t)1 << 30)

enum piece { PIECE_NONE = 0, PIECE_FULL = 1, PIECE_FIRST = 2, PIECE_MIDDLE = 3, PIECE_LAST = 4 };

int blocks_init(struct blocks *b, const void *bytes, size_t n)
{
	static const unsigned char head[BLOCKS_HEAD_BYTES] = { ':', 'W', '&', 'B', 0xe1, 0xbe, 0 };

	*b = (struct blocks){ .bytes = bytes, .n = n, .at = BLOCKS_HEAD_BYTES };
	buf_init(&b->whole, RECORD_MAX);
	return n < sizeof(head) || memcmp(bytes, head, sizeof(head)) ? ERR_CORRUPT : 0;
}

void blocks_done(struct blocks *b)
{
	buf_done(&b->whole);
}

static size_t block_bytes_left(const struct blocks *b)
{
	return BLOCK_BYTES - b->at % BLOCK_BYTES;
}

/* Finds the next complete, undamaged fragment; PIECE_NONE at the end. */
static enum piece next_block_piece(struct blocks *b, struct event_span *ret)
{
	while (b->at < b->n) {
		const unsigned char *p = b->bytes + b->at;
		size_t left = block_bytes_left(b), rest = b->n - b->at, n;
		uint32_t crc;

		if (left < PIECE_HEAD_BYTES) {
			b->at += left;
			continue;
		}
		n = rest < PIECE_HEAD_BYTES ? 0 : p[4] | (size_t)p[5] << 8;
		b->torn = rest < PIECE_HEAD_BYTES || (PIECE_HEAD_BYTES + n > rest && PIECE_HEAD_BYTES + n <= left);
		if (b->torn)
			return PIECE_NONE;
		memcpy(&crc, p, sizeof(crc));
		if (PIECE_HEAD_BYTES + n <= left && p[6] >= PIECE_FULL && p[6] <= PIECE_LAST &&
		    le32toh(crc) == crc32(0, p + 6, (uInt)n + 1)) {
			b->at += PIECE_HEAD_BYTES + n;
			*ret = (struct event_span){ p + PIECE_HEAD_BYTES, p + PIECE_HEAD_BYTES + n };
			return (enum piece)p[6];
		}
		b->damaged++;
		b->at += left;
	}
	return PIECE_NONE;
}

int blocks_next(struct blocks *b, struct event_span *ret)
{
	bool open = false; /* a first fragment has been read */
	enum piece what;

	buf_reset(&b->whole);
	while ((what = next_block_piece(b, ret)) != PIECE_NONE) {
		if (what == PIECE_FULL || what == PIECE_FIRST) {
			b->damaged += open;
			buf_reset(&b->whole);
		} else if (!open) {
			b->damaged++;
			continue;
		}
		if (what == PIECE_FULL)
			return 1;
		buf_add(&b->whole, ret->at, (size_t)(ret->end - ret->at));
		open = true;
		if (what != PIECE_LAST)
			continue;
		open = false;
		if (buf_failed(&b->whole)) {
			b->damaged++;
			continue;
		}
		*ret = (struct event_span){ (const unsigned char *)b->whole.data,
					    (const unsigned char *)b->whole.data + b->whole.len };
		return 1;
	}
	return 0;
}

/* Records: numbers of wandb_internal.proto. */
enum { RECORD_HISTORY = 2, RECORD_SUMMARY = 3, RECORD_OUTPUT = 4, RECORD_CONFIG = 5, RECORD_STATS = 7,
       RECORD_ARTIFACT = 8, RECORD_TENSORBOARD = 9, RECORD_ALERT = 10, RECORD_METRIC = 12,
       RECORD_OUTPUT_RAW = 13, RECORD_RUN = 17,
       RECORD_EXIT = 18, RECORD_ENVIRONMENT = 26 };
enum { STREAM_OUT = 1, STREAM_ERR = 2, LINES_KEPT = 256 };

struct wandb {
	struct importer *b;
	const struct wandb_file *file;
	struct importer_run run;
	bool begun, ended;
	int exit_code;
	double last_s;	 /* wall time of the last record */
	int64_t samples; /* number of samples of system statistics */
	struct wandb_items items;
	json_t *config, *summary;
	struct buf line[3]; /* text after the last line end, by stream */
	struct buf lines;   /* complete lines that were not passed on yet */
	double lines_s;	    /* time of the first of them */
	int line_count;
};

/* A text field as UTF-8, in the arena. */
static const char *wandb_text(struct wandb *w, const struct wire_field *f)
{
	struct event_text t = wire_text(f);
	size_t room = f->type == WIRE_BYTES ? t.len * 3 + 1 : 1;
	char *to = arena_alloc(w->b->kept, room);

	if (f->type == WIRE_BYTES)
		utf8_copy(to, room, t.at, t.len, NULL);
	return to;
}

/* google.protobuf.Timestamp */
static double wandb_time(struct event_span s)
{
	struct wire_field f;
	double seconds = 0;

	while (wire_next(&s, &f) > 0)
		seconds += f.number == 1 ? (double)(int64_t)f.value : f.number == 2 ? (double)f.value / 1e9 : 0;
	return seconds;
}

/* --- identity of the run --------------------------------------------------------------------------------- */

struct wandb_identity {
	const char *id, *entity, *project, *name, *notes, *group, *job;
	struct event_span config;
	int64_t starting_step;
	double start_s;
};

static void read_wandb_identity(struct wandb *w, struct event_span s, struct wandb_identity *ret)
{
	const char **texts[11] = { [1] = &ret->id,  [2] = &ret->entity, [3] = &ret->project, [6] = &ret->group,
				   [7] = &ret->job, [8] = &ret->name,	[9] = &ret->notes };
	struct wire_field f;

	*ret = (struct wandb_identity){ "", "", "", "", "", "", "", { NULL, NULL }, 0, 0 };
	while (wire_next(&s, &f) > 0) {
		if (f.number < 11 && texts[f.number])
			*texts[f.number] = wandb_text(w, &f);
		else if (f.number == 4)
			ret->config = wire_span(&f);
		else if (f.number == 14)
			ret->starting_step = (int64_t)f.value;
		else if (f.number == 17)
			ret->start_s = wandb_time(wire_span(&f));
	}
}

/* Imports the user's tags in a run record. */
static void import_wandb_tags(struct wandb *w, struct event_span s)
{
	struct wire_field f;

	while (wire_next(&s, &f) > 0)
		if (f.number == 10)
			importer_tag(&w->run, wandb_text(w, &f), "");
}

/* Imports the labels of the first run record as tags. */
static void import_wandb_labels(struct wandb *w, const struct wandb_identity *of)
{
	importer_tag(&w->run, "wandb.run_id", of->id);
	if (*of->entity)
		importer_tag(&w->run, "wandb.entity", of->entity);
	if (*of->group)
		importer_tag(&w->run, "wandb.group", of->group);
	if (*of->job)
		importer_tag(&w->run, "wandb.job_type", of->job);
	if (*of->notes)
		importer_note(&w->run, of->notes);
}

static void import_git_record(struct wandb *w, struct event_span s)
{
	struct wire_field f;

	while (wire_next(&s, &f) > 0)
		if (f.number == 1 || f.number == 2)
			importer_code(&w->run, f.number == 1 ? "remote" : "commit", wandb_text(w, &f));
}

/* A resumed run is a further segment. W&B's steps only rise, so no earlier point is hidden unless the record has a
 * starting step. */
static void set_session_segment(struct wandb *w, const struct wandb_identity *id)
{
	int *n = w->file->sessions ? map_put(w->file->sessions, w->run.id, 32) : NULL;

	w->run.part = w->file->session;
	if (!n || !(*n)++)
		return;
	w->run.segment = *n - 1;
	w->run.first_step = id->starting_step > 0 ? id->starting_step : INT64_MAX / 2;
}

/* Begins the run from its run record, and reads its labels, config and git state. */
static int read_run_record(struct wandb *w, struct event_span s, struct err *err)
{
	struct wandb_identity id;
	struct wire_field f;
	char ours[33];
	int rc;

	read_wandb_identity(w, s, &id);
	if (w->begun) { /* the record is repeated with later information */
		importer_run_rename(&w->run, id.name);
		import_wandb_tags(w, s);
	}
	if (w->begun && *id.notes)
		importer_note(&w->run, id.notes);
	if (w->begun || !*id.id)
		return 0;
	importer_id(ours, "wandb %s/%s/%s", id.entity, id.project, id.id);
	rc = importer_run_begin(&w->run, w->b,
			     &(struct importer_run_head){ ours, *id.project ? id.project : "uncategorized",
						       *id.name ? id.name : id.id, id.start_s }, err);
	if (rc)
		return rc;
	w->begun = true;
	w->last_s = id.start_s;
	w->items = (struct wandb_items){ .run = &w->run, .files = w->file->files, .seen = w->items.seen };
	set_session_segment(w, &id);
	import_wandb_tags(w, s);
	import_wandb_labels(w, &id);
	wandb_merge(w->config, id.config);
	while (wire_next(&s, &f) > 0)
		if (f.number == 21)
			import_git_record(w, wire_span(&f));
	return 0;
}

static void read_environment_record(struct wandb *w, struct event_span s)
{
	static const char *const names[] = { [1] = "os",	  [2] = "python", [6] = "program", [12] = "host",
					     [14] = "executable", [18] = "gpu",	  [25] = "cuda" };
	struct wire_field f;

	while (wire_next(&s, &f) > 0) {
		if (f.number < sizeof(names) / sizeof(names[0]) && names[f.number] && f.type == WIRE_BYTES)
			importer_env(&w->run, names[f.number], wandb_text(w, &f));
		else if (f.number == 9)
			import_git_record(w, wire_span(&f));
	}
}

/* --- measurements ---------------------------------------------------------------------------------------- */

static void read_history_record(struct wandb *w, struct event_span s)
{
	json_t *row = json_object();
	struct event_span step = { NULL, NULL };
	struct wire_field f;
	double at;

	wandb_merge(row, s);
	while (wire_next(&s, &f) > 0)
		if (f.number == 2)
			step = wire_span(&f);
	while (wire_next(&step, &f) > 0)
		if (f.number == 1)
			w->items.step = (int64_t)f.value;
	at = content_number(json_object_get(row, "_timestamp"));
	w->items.wall_s = at > 0 ? at : w->last_s;
	w->last_s = w->items.wall_s;
	wandb_row(&w->items, row);
	json_decref(row);
}

/* A sample of system statistics: W&B's names below system/, numbered by sample. */
static void read_stats_record(struct wandb *w, struct event_span s)
{
	struct event_span all = s;
	struct wire_field f;
	double at = w->last_s;
	json_t *row, *value;
	const char *name;
	char key[300];

	while (wire_next(&s, &f) > 0)
		if (f.number == 2)
			at = wandb_time(wire_span(&f));
	row = json_object();
	wandb_merge_from(row, all, 3);
	w->samples++;
	json_object_foreach(row, name, value) {
		snprintf(key, sizeof(key), "system/%.240s", name);
		importer_point(&w->run, key, w->samples, at, content_number(value));
	}
	w->last_s = at > w->last_s ? at : w->last_s;
	json_decref(row);
}

static void flush_console_lines(struct wandb *w)
{
	importer_lines(&w->run, w->lines_s, &w->lines);
	buf_reset(&w->lines);
	w->line_count = 0;
}

static void add_console_line(struct wandb *w, int stream, double at, bool again)
{
	struct console_line line = { .stream = stream, .again = again,
				     .text = { w->line[stream].len ? w->line[stream].data : "", w->line[stream].len } };

	if (!w->line_count)
		w->lines_s = at;
	line.ms = at > w->lines_s ? (int64_t)((at - w->lines_s) * 1e3) : 0;
	console_add(&w->lines, &line);
	buf_reset(&w->line[stream]);
	if (++w->line_count == LINES_KEPT)
		flush_console_lines(w);
}

/* Output arrives in pieces. A line ends at its line feed; after a carriage return the next text overwrites it. */
static void read_output_record(struct wandb *w, struct event_span s)
{
	struct event_span text = { NULL, NULL };
	struct wire_field f;
	double at = w->last_s;
	int stream = STREAM_ERR; /* enum value 0, which protobuf omits */

	while (wire_next(&s, &f) > 0) {
		if (f.number == 1)
			stream = f.value == 1 ? STREAM_OUT : STREAM_ERR;
		else if (f.number == 2)
			at = wandb_time(wire_span(&f));
		else if (f.number == 3)
			text = wire_span(&f);
	}
	for (; text.at < text.end; text.at++) {
		if (*text.at == '\n')
			add_console_line(w, stream, at, false);
		else if (*text.at == '\r' && text.at + 1 < text.end && text.at[1] != '\n')
			add_console_line(w, stream, at, true);
		else if (*text.at != '\r')
			buf_addc(&w->line[stream], (char)*text.at);
	}
	w->last_s = at > w->last_s ? at : w->last_s;
}

static void read_alert_record(struct wandb *w, struct event_span s)
{
	struct encode_alert a = { .level = 1, .step = w->items.step };
	struct wire_field f;

	while (wire_next(&s, &f) > 0) {
		const char *text = wandb_text(w, &f);

		if (f.number == 1)
			a.title = (struct event_text){ text, strlen(text) };
		else if (f.number == 2)
			a.text = (struct event_text){ text, strlen(text) };
		else if (f.number == 3)
			a.level = !strcmp(text, "ERROR") ? 3 : !strcmp(text, "WARN") ? 2 : 1;
	}
	importer_alert(&w->run, w->last_s, &a);
}

/* A rule of define_metric. */
static void read_metric_record(struct wandb *w, struct event_span s)
{
	struct wandb_rule *r = arena_alloc(w->b->kept, sizeof(*r)), **end = &w->items.rules;
	struct wire_field f;

	*r = (struct wandb_rule){ "", "", NULL };
	while (wire_next(&s, &f) > 0) {
		if (f.number == 1 || f.number == 2)
			r->name = *wandb_text(w, &f) ? wandb_text(w, &f) : r->name;
		else if (f.number == 4)
			r->step_metric = wandb_text(w, &f);
	}
	while (*end && strcmp((*end)->name, r->name))
		end = &(*end)->next;
	r->next = *end ? (*end)->next : NULL; /* a repeated one replaces the first */
	if (*r->name)
		*end = r;
}

static void read_exit_record(struct wandb *w, struct event_span s)
{
	struct wire_field f;

	w->ended = true;
	while (wire_next(&s, &f) > 0)
		if (f.number == 1)
			w->exit_code = (int)f.value;
}

/* --- records ---------------------------------------------------------------------------------------------------- */

static void count_other_record(struct wandb *w, unsigned number, struct event_span s)
{
	struct wire_field f;
	const char *name = "";

	if (number != RECORD_ARTIFACT && number != RECORD_TENSORBOARD)
		return; /* settings, telemetry, requests */
	while (wire_next(&s, &f) > 0)
		if (f.number == 5)
			name = wandb_text(w, &f);
	if (number == RECORD_ARTIFACT)
		importer_leave_out(w->b, "an artifact of W&B, whose files are in its own cache: %.100s", name);
	else
		importer_leave_out(w->b, "a folder of TensorBoard: import it separately");
}

/* Dispatches a record by its field number; only a run record is accepted before the run begins. */
static int read_record_field(struct wandb *w, const struct wire_field *f, struct err *err)
{
	struct event_span s = wire_span(f);

	if (f->number == RECORD_RUN)
		return read_run_record(w, s, err);
	if (!w->begun)
		return 0;
	switch (f->number) {
	case RECORD_HISTORY:
		read_history_record(w, s);
		break;
	case RECORD_SUMMARY:
		wandb_merge(w->summary, s);
		break;
	case RECORD_CONFIG:
		wandb_merge(w->config, s);
		break;
	case RECORD_STATS:
		read_stats_record(w, s);
		break;
	case RECORD_OUTPUT_RAW:
	case RECORD_OUTPUT:
		read_output_record(w, s);
		break;
	case RECORD_METRIC:
		read_metric_record(w, s);
		break;
	case RECORD_ALERT:
		read_alert_record(w, s);
		break;
	case RECORD_EXIT:
		read_exit_record(w, s);
		break;
	case RECORD_ENVIRONMENT:
		read_environment_record(w, s);
		break;
	default:
		count_other_record(w, f->number, s);
	}
	return 0;
}

static int finish_wandb_run(struct wandb *w, struct err *err)
{
	char reason[40] = "";

	for (int stream = STREAM_OUT; stream <= STREAM_ERR; stream++)
		if (w->line[stream].len)
			add_console_line(w, stream, w->last_s, false);
	flush_console_lines(w);
	wandb_params(&w->items, w->config);
	if (w->ended) /* without an end, rows may be missing */
		wandb_finals(&w->items, w->summary);
	if (w->exit_code)
		snprintf(reason, sizeof(reason), "exit code %d", w->exit_code);
	/* a run without an end was killed; W&B calls it crashed */
	importer_status(&w->run, !w->ended ? EVENT_KILLED : w->exit_code ? EVENT_FAILED : EVENT_FINISHED, w->last_s,
			reason);
	return importer_run_end(&w->run, err);
}

static int read_wandb_records(struct wandb *w, struct blocks *blocks, struct err *err)
{
	struct event_span record;
	int rc = 0;

	while (!rc && blocks_next(blocks, &record) > 0) {
		struct wire_field f;
		int got;

		while (!rc && (got = wire_next(&record, &f)) > 0)
			rc = read_record_field(w, &f, err);
	}
	if (blocks->torn)
		importer_leave_out(w->b, "the last record of %s, which is incomplete", w->file->session);
	for (uint64_t i = 0; i < blocks->damaged; i++)
		importer_leave_out(w->b, "a damaged record of %s", w->file->session);
	return rc;
}

int wandb_take(struct importer *b, const struct wandb_file *file, struct err *err)
{
	struct wandb w = { .b = b, .file = file, .config = json_object(), .summary = json_object() };
	struct blocks blocks;
	int rc = blocks_init(&blocks, file->bytes, file->n);

	for (int i = 0; i < 3; i++)
		buf_init(&w.line[i], 1 << 20);
	buf_init(&w.lines, 64 << 20);
	w.items.seen = map_new(sizeof(struct wandb_last));
	if (rc)
		err_set(err, rc, "not a .wandb file");
	rc = rc ? rc : read_wandb_records(&w, &blocks, err);
	if (!rc && !w.begun)
		rc = err_set(err, ERR_CORRUPT, "the record of its run is missing or damaged");
	else if (!rc)
		rc = finish_wandb_run(&w, err);
	else if (w.begun)
		importer_run_drop(&w.run);
	if (!rc && file->files)
		rc = importer_files(b, w.run.id, "", file->files, err);
	for (int i = 0; i < 3; i++)
		buf_done(&w.line[i]);
	buf_done(&w.lines);
	map_free(w.items.seen);
	json_decref(w.config);
	json_decref(w.summary);
	blocks_done(&blocks);
	return rc;
}
