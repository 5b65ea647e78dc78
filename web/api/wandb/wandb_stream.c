/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_stream.c: /files/ENTITY/PROJECT/RUN/file_stream: lines of the history, of system statistics and of the console,
 * the summary, and the end of a run. The reply follows the commit. How many lines are stored is kept with them, so that
 * a repeated request adds nothing. */
#include "web/api/wandb/wandb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/text.h"
#include "web/store/base/map.h"

/* What is stored of a client's streams: the text "stream NAME" of the run. */
struct stream_state {
	int64_t history, events, console; /* lines */
	int64_t base;			  /* number of the first console line of this segment */
	int segment, rank;		  /* rank: one for each client, in the order of their first requests */
	double time_s;			  /* _timestamp of the last row of the history; 0: none */
	double event_s;
};

/* A request while it is stored. */
struct stream {
	json_t *body;
	const char *client; /* "": the only one */
	json_t *summary;    /* the newest: of the request, else the stored one */
	json_t *config, *pending;
	bool summarizes; /* the request has a summary */
	bool stop;
	const char *ended; /* status to set: a journal of another rank than the first does not */
};

static void drop_stream(void *arg)
{
	struct stream *s = arg;

	json_decref(s->body);
	json_decref(s->summary);
	json_decref(s->config);
	json_decref(s->pending);
}

static json_t *lines_of(const struct stream *s, const char *file, int64_t *ret_offset)
{
	json_t *part = json_object_get(json_object_get(s->body, "files"), file);

	*ret_offset = json_integer_value(json_object_get(part, "offset"));
	return json_object_get(part, "content");
}

static int64_t state_int(json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static struct stream_state read_state(const struct wandb_run *run, const char *name)
{
	json_t *o = wandb_parse(wandb_text(run, name));
	struct stream_state st = { .history = state_int(o, "history"),
				   .events = state_int(o, "events"),
				   .console = state_int(o, "console"),
				   .base = state_int(o, "base"),
				   .segment = (int)state_int(o, "segment"),
				   .rank = (int)state_int(o, "rank"),
				   .time_s = json_number_value(json_object_get(o, "time")),
				   .event_s = json_number_value(json_object_get(o, "event")) };

	for (size_t i = 0; !o && i < run->texts.count; i++)
		st.rank += !strncmp(run->texts.items[i].key, "stream", 6);
	json_decref(o);
	return st;
}

static void keep_state(struct call *c, struct wandb_job *job, const char *name, const struct stream_state *st)
{
	wandb_keep_json(c, job, name,
			json_pack("{s:I, s:I, s:I, s:I, s:i, s:i, s:f, s:f}", "history", (json_int_t)st->history,
				  "events", (json_int_t)st->events, "console", (json_int_t)st->console, "base",
				  (json_int_t)st->base, "segment", st->segment, "rank", st->rank, "time", st->time_s,
				  "event", st->event_s));
}

/* --- lines of JSON ---------------------------------------------------------------------------------------------- */

/* A line is new if its number is, or if it is younger than what is stored: a script that begins the run again counts
 * from 0. */
static bool is_new_line(int64_t number, int64_t stored, json_t *row, double time_s)
{
	double at = json_number_value(json_object_get(row, "_timestamp"));

	return number >= stored || at > time_s;
}

static json_t *parse_line(json_t *line)
{
	const char *text = json_string_value(line);
	json_t *row = text ? json_lenient(text, json_string_length(line), 0, NULL) : NULL;

	if (!json_is_object(row)) {
		json_decref(row);
		return NULL;
	}
	return row;
}

struct stream_file {
	const char *file, *tail; /* tail: name of the text that keeps the last line */
	bool events;
};

/* Adds the new lines of a file. Returns their number. */
static int64_t add_stream_lines(struct wandb_job *job, struct wandb_rows *w, struct stream_state *st,
				const struct stream_file *k)
{
	struct stream *s = job->state;
	int64_t *stored = k->events ? &st->events : &st->history, begun = *stored, number, added = 0;
	double *time_s = k->events ? &st->event_s : &st->time_s, had_s = *time_s;
	json_t *lines = lines_of(s, k->file, &number), *line, *row;
	const char *last = NULL;
	size_t i;

	json_array_foreach(lines, i, line) {
		row = parse_line(line);
		if (!row && number + (int64_t)i >= begun)
			wandb_leave_out(w->c, job, "a line of %s that is no JSON object was left out", k->file);
		if (!row || !is_new_line(number + (int64_t)i, begun, row, had_s)) {
			json_decref(row);
			continue;
		}
		if (k->events)
			wandb_rows_events(w, row, *stored + added + 1);
		else
			wandb_rows_row(w, row, *stored + added);
		*time_s = w->wall_s > *time_s ? w->wall_s : *time_s;
		last = json_string_value(line);
		added++;
		json_decref(row);
	}
	*stored += added;
	if (*stored < number + (int64_t)json_array_size(lines))
		*stored = number + (int64_t)json_array_size(lines); /* lines that were lost before they came here */
	if (last)
		wandb_keep(w->c, job, k->tail, last);
	return added;
}

/* --- the console ------------------------------------------------------------------------------------------------ */

/* "ERROR 2023-04-05T10:15:30.000000 text": the time and the stream, and what remains. */
static struct console_line read_log_line(const char *text, double *ret_s)
{
	struct console_line line = { .stream = 1 };
	char stamp[40];
	size_t n;

	if (!strncmp(text, "ERROR ", 6)) {
		line.stream = 2;
		text += 6;
	}
	n = strcspn(text, " ");
	if (n < sizeof(stamp) - 1 && n >= 19) {
		snprintf(stamp, sizeof(stamp), "%.*sZ", (int)n, text);
		if (text_iso_time(stamp, ret_s))
			text += n + (text[n] == ' ');
	}
	line.text = wandb_span(text);
	return line;
}

/* Adds lines after those that are stored; others replace the stored ones, as progress bars do. */
static void add_console(struct call *c, struct wandb_job *job, struct stream_state *st, double now_s)
{
	int64_t number, added = 0, at;
	json_t *content = lines_of(job->state, "output.log", &number), *line;
	double begun_s = 0, at_s;
	struct buf lines;
	size_t i;

	buf_init(&lines, LIMIT_record_bytes);
	json_array_foreach(content, i, line) {
		struct console_line one;

		at = number + (int64_t)i;
		if (!json_is_string(line) && at >= st->console)
			wandb_leave_out(c, job, "a line of output.log that is no text was left out");
		if (!json_is_string(line) || at < st->base)
			continue;
		at_s = begun_s > 0 ? begun_s : now_s;
		one = read_log_line(json_string_value(line), &at_s);
		if (one.text.len > LIMIT_line_bytes && at >= st->console)
			wandb_leave_out(c, job, "a line of the console was cut to %d bytes", LIMIT_line_bytes);
		one.text.len = one.text.len < LIMIT_line_bytes ? one.text.len : LIMIT_line_bytes;
		if (at < st->console) {
			list_push(
				c->arena, &job->lines, &job->line_count,
				(struct ingest_line){ at - st->base, (int64_t)(at_s * 1e3), one.stream,
						      arena_printf(c->arena, "%.*s", (int)one.text.len, one.text.at) });
			continue;
		}
		begun_s = begun_s > 0 ? begun_s : at_s;
		one.ms = at_s > begun_s ? (int64_t)((at_s - begun_s) * 1e3) : 0;
		console_add(&lines, &one);
		added++;
	}
	if (added)
		encode_console(&job->records, begun_s, &lines);
	buf_done(&lines);
	if (number + (int64_t)json_array_size(content) > st->console)
		st->console = number + (int64_t)json_array_size(content);
}

/* --- the request ------------------------------------------------------------------------------------------------ */

/* The end: W&B's client says how long the run took; a folder that is sent later ended then. */
static double end_time(const struct wandb_job *job, json_t *summary, double now_s)
{
	double runtime_s = json_number_value(json_object_get(json_object_get(summary, "_wandb"), "runtime"));
	double end_s = (double)job->run.run.start_ms / 1e3 + runtime_s + 1;

	return runtime_s > 0 && job->run.run.start_ms != INT64_MIN && end_s < now_s ? end_s : now_s;
}

static void add_end(struct wandb_job *job, struct wandb_rows *w)
{
	struct stream *s = job->state;
	int64_t code = state_int(s->body, "exitcode");
	bool preempting = json_is_true(json_object_get(s->body, "preempting")) || wandb_text(&job->run, "preempting");
	enum event_status status = !code	 ? EVENT_FINISHED
				   : preempting	 ? EVENT_PREEMPTED
				   : code == 255 ? EVENT_KILLED
						 : EVENT_FAILED;
	char reason[40] = "";

	if (s->summary) {
		w->wall_s = w->now_s;
		wandb_rows_finals(w, &job->run.run, s->summary);
	}
	if (code)
		snprintf(reason, sizeof(reason), "exit code %lld", (long long)code);
	s->ended = w->rank > 0 ? event_status_name(status) : NULL;
	encode_status(&job->records, end_time(job, s->summary, w->now_s), status, wandb_span(reason));
}

/* Returns true if the run has ended in the segment and the request has what is not stored. */
static bool begins_again(const struct wandb_job *job, const struct stream_state *st)
{
	const struct query_run *run = &job->run.run;
	struct stream *s = job->state;
	int64_t offset;
	json_t *lines = lines_of(s, "wandb-history.jsonl", &offset), *last;
	bool news = false;

	/* of several clients one may end the run before the others have sent their last lines */
	if (*s->client || !strcmp(run->status, "running") || run->status_inferred)
		return false;
	if (json_array_size(lines)) {
		last = parse_line(json_array_get(lines, json_array_size(lines) - 1));
		news = last && is_new_line(offset + (int64_t)json_array_size(lines) - 1, st->history, last, st->time_s);
		json_decref(last);
	}
	lines = lines_of(s, "output.log", &offset);
	return news || (json_array_size(lines) && offset + (int64_t)json_array_size(lines) > st->console);
}

static int newest_segment(const struct query_run *run)
{
	return run->segment_count ? run->segments[run->segment_count - 1].number : 0;
}

/* The time of the first line, from which the run started. */
static double first_time(const struct stream *s, double now_s)
{
	int64_t offset;
	json_t *row = parse_line(json_array_get(lines_of(s, "wandb-history.jsonl", &offset), 0));
	double at = json_number_value(json_object_get(row, "_timestamp"));
	double runtime = json_number_value(json_object_get(row, "_runtime"));

	json_decref(row);
	return at > 0 && at < now_s && runtime >= 0 ? at - runtime : now_s;
}

/* Reads what earlier requests left: the rules of define_metric, the files that are expected, the summary. */
static void read_stream_texts(struct wandb_job *job, struct wandb_rows *w)
{
	struct stream *s = job->state;

	json_decref(s->config);
	json_decref(s->pending);
	s->config = wandb_parse(wandb_text(&job->run, "config"));
	s->pending = wandb_parse(wandb_text(&job->run, "pending"));
	if (!json_is_object(s->pending)) {
		json_decref(s->pending);
		s->pending = json_object();
	}
	if (!s->summarizes) {
		json_decref(s->summary);
		s->summary = wandb_parse(wandb_text(&job->run, "summary"));
	}
	w->rules = wandb_internal(s->config, "m");
	w->pending = s->pending;
}

/* Adds all lines of the request, and the texts that go with them. */
static void add_request(struct call *c, struct wandb_job *job, struct wandb_rows *w, struct stream_state *st)
{
	static const struct stream_file history = { "wandb-history.jsonl", "history.tail", false };
	static const struct stream_file events = { "wandb-events.jsonl", "events.tail", true };
	struct stream *s = job->state;
	size_t expected = json_object_size(s->pending);

	encode_heartbeat(&job->records, w->now_s, 0);
	add_stream_lines(job, w, st, &history);
	add_stream_lines(job, w, st, &events);
	add_console(c, job, st, w->now_s);
	if (s->summarizes)
		wandb_keep_json(c, job, "summary", json_incref(s->summary));
	if (json_object_size(s->pending) != expected)
		wandb_keep_json(c, job, "pending", json_incref(s->pending));
	if (json_is_true(json_object_get(s->body, "preempting")))
		wandb_keep(c, job, "preempting", "1");
	if (json_is_true(json_object_get(s->body, "complete")))
		add_end(job, w);
}

/* Builds the change of a request: of the segment that its lines belong to. */
static enum call_next build_stream(struct call *c, struct wandb_job *job)
{
	struct stream *s = job->state;
	const char *name = arena_printf(c->arena, "stream%s%s", *s->client ? " " : "", s->client);
	struct wandb_rows w = { .c = c, .job = job, .to = &job->records, .now_s = clock_wall_s() };
	struct stream_state st;
	struct wandb_writer writer = { .name = name };

	if (!job->run.found)
		return call_fail(c, CALL_not_found, "run", "there is no run %s/%s/%s: it begins with wandb.init()",
				 job->run.entity, job->run.project, job->run.name);
	if (job->run.run.deleted)
		return call_fail(c, CALL_gone, "run", "run %s is deleted", job->run.name);
	st = read_state(&job->run, name);
	if (begins_again(job, &st)) {
		writer.segment = newest_segment(&job->run.run) + 1;
		writer.first_step = INT64_MAX / 2; /* hides nothing: steps go on */
	} else {
		writer.segment = newest_segment(&job->run.run);
	}
	writer.rank = st.rank;
	writer.start_s = first_time(s, w.now_s);
	if (!wandb_begin(c, job, &writer))
		return CALL_DONE;
	st = read_state(&job->run, name);
	if (st.segment != writer.segment) { /* the console of a segment is numbered from 0 */
		st.segment = writer.segment;
		st.base = st.console;
	}
	w.rank = st.rank;
	w.seen = json_object();
	read_stream_texts(job, &w);
	add_request(c, job, &w, &st);
	keep_state(c, job, name, &st);
	json_decref(w.seen);
	s->stop = wandb_text(&job->run, "stop") != NULL;
	return wandb_submit(c, job);
}

static enum call_next end_stream(struct call *c)
{
	(void)c;
	return CALL_DONE;
}

/* Writes the reply; then files that were expected, and are there, become media. */
static enum call_next reply_lines(struct call *c)
{
	struct wandb_job *job = wandb_job_of(c);
	struct stream *s = job->state;
	struct js j = { .out = &c->out };

	js_open(&j, '{');
	if (s->stop)
		js_key_bool(&j, "stopped", true);
	js_reply(c, &j);
	return json_object_size(s->pending) ? wandb_settle(c, job->run.id, end_stream) : CALL_DONE;
}

static enum call_next settle_ended(struct call *c, const struct ingest_result *res)
{
	return res->code ? call_fail_err(c, "run", &res->err) : reply_lines(c);
}

/* After the commit: sets the status if another rank than the first ended the run. */
static enum call_next reply_stream(struct call *c)
{
	struct wandb_job *job = wandb_job_of(c);
	struct stream *s = job->state;
	struct ingest_op op = { .kind = &change_run_patch, .run = job->run.id, .state = INGEST_NO_STATE };

	op.state.status = s->ended;
	return s->ended ? api_submit(c, &(struct api_change){ .op = &op, .keep_errors = true, .then = settle_ended })
			: reply_lines(c);
}

enum call_next on_wandb_stream(struct call *c)
{
	struct wandb_job *job = arena_alloc(c->arena, sizeof(*job));
	struct stream *s = arena_alloc(c->arena, sizeof(*s));
	const char *type = c->host->header(c, "Content-Type"), *client = c->host->header(c, "X-WANDB-ASYNC-CLIENT-ID");
	int64_t offset;
	json_t *summary;

	/* the client would repeat 415 for days */
	if (type && strncmp(type, "application/json", 16))
		return call_fail(c, CALL_bad_request, "Content-Type", "Content-Type: expected application/json");
	call_defer(c, drop_stream, s);
	s->body = json_body(c);
	if (!s->body)
		return CALL_DONE;
	s->client = client && strlen(client) <= 100 ? client : "";
	summary = lines_of(s, "wandb-summary.json", &offset);
	s->summary = parse_line(json_array_get(summary, json_array_size(summary) - 1));
	s->summarizes = s->summary != NULL;
	*job = (struct wandb_job){ .build = build_stream, .then = reply_stream, .state = s };
	job->run = (struct wandb_run){ .entity = c->address.vars[0],
				       .project = c->address.vars[1],
				       .name = c->address.vars[2] };
	return wandb_change(c, job);
}

/* Statistics that the client sends to W&B: nothing is stored. */
enum call_next on_wandb_telemetry(struct call *c)
{
	buf_adds(&c->out, "{}\n");
	return CALL_DONE;
}
