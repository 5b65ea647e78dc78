/* SPDX-License-Identifier: Apache-2.0 */
/* change_journal.c: stores a range of journal bytes: decoded on the caller's thread, written as rows on the
 * writer's. The durable offset of the journal recognises bytes that both a followed folder and a POST deliver. */
#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/clock.h"
#include "web/store/points/order.h"
#include "web/store/write/apply.h"
#include "web/store/write/change.h"
#include "web/store/write/segment.h"

/* A record younger than this was written by a program that is alive; older ones carry their own time. */
#define LIVE_MS INT64_C(600000)

static int check_journal_op(const struct ingest_op *op, struct err *err)
{
	int rc = change_check_run(op, err);

	if (!rc && !change_is_id(op->journal.writer))
		rc = err_set(err, ERR_USAGE, "'%.40s' is not a writer id (32 lower-case hex digits)",
			     op->journal.writer ? op->journal.writer : "");
	return rc;
}

/* The first damaged record ends a journal of a client; the records before it are stored and counted. */
static int decode_journal_op(struct change *c, const struct ingest_op *op, struct err *err)
{
	int rc = intake_journal(&c->in, op, &c->intake_err);

	if (rc && rc != ERR_CORRUPT) {
		if (err)
			*err = c->intake_err;
		return rc;
	}
	if (!rc && c->in.damaged)
		rc = err_set(&c->intake_err, ERR_CORRUPT, "%s: damaged at byte %llu",
			     op->journal.path ? op->journal.path : op->journal.writer, (unsigned long long)c->in.end);
	c->intake_code = rc;
	return 0;
}

static int starts_beyond_end(struct change *c, uint64_t durable)
{
	c->res.durable = durable;
	c->res.code =
		err_set(&c->res.err, ERR_EXISTS, "the journal is stored up to byte %llu; the bytes sent begin at %llu",
			(unsigned long long)durable, (unsigned long long)c->op.journal.offset);
	return 0;
}

static int64_t latest_record_ms(const struct change *c)
{
	return c->op.journal.changed_ms ? c->op.journal.changed_ms : clock_wall_ms();
}

/* A time after the file's last change (milliseconds taken for seconds, a wrong clock) tells nothing of when the run
 * lived. */
static void clamp_record_times(struct change *c)
{
	const int64_t latest = latest_record_ms(c) + LIVE_MS;

	if (c->in.first_ms > latest)
		c->in.first_ms = INT64_MIN;
	if (c->in.last_ms > latest)
		c->in.last_ms = INT64_MIN;
}

/* *ret stays NULL if c->res refuses it. */
static int make_journal_run(struct state *st, struct change *c, struct state_run **ret, struct err *err)
{
	const struct intake_header *h = c->in.header;
	const struct ingest_foreign *f = c->op.journal.foreign;
	struct state_new_run n = {
		.uuid = c->op.run,
		.experiment = h ? h->experiment : f->experiment,
		.name = h ? h->name : f->name,
		.status = "running",
		.start_ms = c->in.first_ms == INT64_MIN ? latest_record_ms(c) : c->in.first_ms,
		.beats = true,
	};
	int rc;

	if (!n.experiment || !*n.experiment)
		n.experiment = "Default";
	rc = change_may_use_name(st, c, n.experiment, err);
	if (rc > 0)
		rc = state_run_add(st, &n, ret, err);
	if (rc || !*ret)
		return rc;
	c->about = (struct change_about){ .action = "create", .object = "run" };
	return change_about_run(st, c, *ret, err);
}

/* Opens the segment of a journal and adds the row of its writer. */
static int begin_writer(struct state *st, struct state_run *r, const struct change *c, struct state_writer *w,
			struct err *err)
{
	const struct intake_header *h = c->in.header;
	struct segment_open o = { .start_ms = c->in.first_ms, .status = "running" };
	int rc;

	w->rank = h ? h->rank : EVENT_RANK_RUN;
	w->segment = h ? h->segment : 0;
	w->ordered = h && h->ordered;
	if (h) {
		o.number = h->segment;
		o.first_step = h->first_step;
		o.first_epoch = h->first_epoch;
		o.world_size = h->world_size;
	}
	if (o.start_ms != INT64_MIN && (r->start_ms == INT64_MIN || o.start_ms < r->start_ms))
		r->start_ms = o.start_ms;
	r->beats = true;
	rc = segment_open(st, r, &o, err);
	if (!rc)
		rc = db_run(state_db(st), DB_writer_add, err, "itiiititi", r->id, c->op.journal.writer,
			    (int64_t)w->rank, (int64_t)w->segment, r->last_ms, h ? h->host : "",
			    h ? h->pid : INT64_C(0), c->op.journal.path, (int64_t)w->ordered);
	if (!rc) {
		w->id = db_last_id(state_db(st));
		w->durable = 0;
		w->loaded = true;
	}
	return rc;
}

/* Refuses the journal of another training that uses the id of a live run: the same rank of the same segment. A file in
 * a followed folder is stored: its program warns. */
static int refuse_second_training(struct state *st, struct state_run *r, struct change *c, struct err *err)
{
	const struct intake_header *h = c->op.journal.path ? NULL : c->in.header;
	const struct state_segment *s = h ? state_segment(r, h->segment) : NULL;
	struct db_rows *q;
	int rc;

	if (!s || strcmp(s->status, "running"))
		return 0;
	rc = db_start(state_db(st), &q, DB_writer_rival, err, "iiiiti", r->id, (int64_t)h->rank, (int64_t)h->segment,
		      clock_wall_ms() - SEGMENT_LOST_MS, h->host, h->pid);
	if (rc || (rc = db_next(state_db(st), q, err)) <= 0)
		return rc;
	change_refuse(c, ERR_EXISTS,
		      "run %s is being recorded by process %lld on %.200s: give this training a run id of its own, or "
		      "each process a rank", r->uuid, (long long)db_i64(q, COL_writer_rival_pid),
		      db_str(q, COL_writer_rival_host));
	db_stop(q);
	err_field(&c->res.err, "run");
	return 0;
}

/* A value that differs from the first one: it replaces it if its writer says so. Either way a problem of the run names
 * both. */
static int put_other_param(struct state *st, struct state_run *r, const struct intake_item *it, const char *old,
			   struct err *err)
{
	char text[300];
	int64_t key;

	snprintf(text, sizeof(text),
		 it->changed ? "param '%.100s' was changed to '%.60s' from '%.60s'"
			     : "param '%.100s': '%.60s' contradicts its first value, '%.60s'",
		 it->key, it->text, old);
	if (it->changed) {
		int rc = state_key(st, it->key, &key, err);

		rc = rc ? rc : db_run(state_db(st), DB_param_change, err, "iit", r->id, key, it->text);
		if (rc)
			return rc;
	}
	return apply_problem(st, r, text, 1, err);
}

/* Stores a param; one beyond the limit or against its first value becomes a problem of the run. */
static int put_param(struct state *st, struct state_run *r, const struct state_writer *w, const struct intake_item *it,
		     struct err *err)
{
	struct db *d = state_db(st);
	int64_t key;
	struct db_rows *q;
	char old[LIMIT_value_bytes + 1] = "";
	bool differs = false;
	int rc = state_key(st, it->key, &key, err);

	if (rc)
		return rc;
	if (it->segment) {
		r->params = -1; /* recount: there may be one more */
		rc = db_run(d, DB_segment_param_put, err, "iiit", r->id, (int64_t)w->segment, key, it->text);
		return rc ? rc
			  : db_run(d, DB_param_segment_put, err, "iiit", r->id, key, (int64_t)w->segment, it->text);
	}
	rc = db_start(d, &q, DB_param_by_key, err, "ii", r->id, key);
	if (!rc && (rc = db_next(d, q, err)) > 0) {
		snprintf(old, sizeof(old), "%s", db_str(q, COL_param_by_key_value));
		differs = strcmp(old, it->text) != 0;
		db_stop(q);
	}
	if (rc < 0)
		return rc;
	if (!rc)
		rc = state_count_params(st, r, err);
	if (rc < 0)
		return rc;
	if (!rc && r->params >= LIMIT_params_per_run) {
		char text[100];

		snprintf(text, sizeof(text), "more than %d params: some were left out", (int)LIMIT_params_per_run);
		return apply_problem(st, r, text, 1, err);
	}
	if (!rc) {
		r->params++;
		return db_run(d, DB_param_add, err, "iit", r->id, key, it->text);
	}
	return differs ? put_other_param(st, r, it, old, err) : 0;
}

/* Stores why a run ended. A restart that ends without a reason removes the previous one. */
static int put_status_reason(struct state *st, const struct state_run *r, const struct intake_item *it, struct err *err)
{
	int64_t key;
	int rc;

	if (!it->text[0] && r->segment_count < 2)
		return 0;
	rc = state_key(st, STATUS_REASON, &key, err);
	if (!rc)
		rc = it->text[0] ? db_run(state_db(st), DB_environment_put, err, "iit", r->id, key, it->text)
				 : db_run(state_db(st), DB_environment_drop, err, "ii", r->id, key);
	return rc;
}

static int put_status(struct state *st, struct state_run *r, const struct state_writer *w, const struct intake_item *it,
		      struct err *err)
{
	struct state_segment news = { .end_ms = it->time_ms };
	const char *name = event_status_name(it->status);
	int rc;

	/* Only the first rank decides the status of the run. */
	if (!name || w->rank > 0)
		return 0;
	memcpy(news.status, name, strlen(name) + 1);
	news.final = w->rank == EVENT_RANK_LAUNCHER ? 2 : 1;
	if (it->status == EVENT_RUNNING || it->status == EVENT_SCHEDULED) {
		/* set by an importer, as no writer sends it: silence has no meaning for this run */
		r->beats = false;
		news.final = 0;
		news.end_ms = INT64_MIN;
	} else if (it->kind == EVENT_HPARAMS_END && it->end_ms) {
		news.end_ms = it->end_ms;
	}
	rc = segment_status(st, r, w->segment, &news, err);
	return rc || it->kind != EVENT_STATUS ? rc : put_status_reason(st, r, it, err);
}

#define EDITING "journal" /* the notes that a program writes are one edition */

/* Appends the text of a foreign file to the note. */
static int put_journal_text(struct state *st, struct state_run *r, const struct intake_item *it, struct err *err)
{
	struct db *d = state_db(st);
	struct db_rows *q;
	struct buf note;
	int rc = db_start(d, &q, DB_note_get, err, "i", r->id);

	buf_init(&note, 4 * LIMIT_note_bytes);
	if (!rc && (rc = db_next(d, q, err)) > 0) {
		buf_adds(&note, db_str(q, COL_note_get_text));
		buf_adds(&note, "\n\n");
		db_stop(q);
	}
	if (it->step > 0)
		buf_addf(&note, "**%s, step %lld**\n\n", it->key, (long long)it->step);
	buf_adds(&note, it->text);
	if (rc >= 0)
		rc = 0;
	if (!rc && !buf_failed(&note) && note.len <= LIMIT_note_bytes)
		rc = apply_note(st, r, note.data, EDITING, err);
	buf_done(&note);
	return rc;
}

/* Puts a foreign writer into a segment of its run. */
static int join_foreign_segment(struct state *st, struct state_writer *w, int number, struct err *err)
{
	w->segment = number;
	return db_run(state_db(st), DB_writer_segment_put, err, "ii", w->id, (int64_t)number);
}

/* A foreign writer whose first step is below the run's last step: a restart, as with our own journals. A file in a
 * folder of its own joins a restart that the files of the run began. */
static int restart_foreign(struct state *st, struct state_run *r, struct state_writer *w, const struct intake_item *it,
			   struct err *err)
{
	struct segment_open o = { .number = r->segment + 1, .first_step = it->step, .first_epoch = it->step,
				  .start_ms = it->time_ms, .status = "running" };
	int rc;

	if (w->rank != EVENT_RANK_RUN || w->durable || it->step <= 0)
		return 0;
	for (size_t i = 0; w->annotates && i < r->segment_count; i++)
		if (r->segments[i].first_step == it->step)
			return join_foreign_segment(st, w, r->segments[i].number, err);
	if (w->annotates || r->last_step < it->step)
		return 0;
	rc = segment_open(st, r, &o, err);
	return rc ? rc : join_foreign_segment(st, w, o.number, err);
}

/* Stores one item of a journal. */
static int put_journal_item(struct state *st, struct state_run *r, struct state_writer *w, const struct intake_item *it,
			    struct err *err)
{
	int64_t key;
	int rc;

	switch (it->kind) {
	case EVENT_PARAM:
		return put_param(st, r, w, it, err);
	case EVENT_TAG:
		if (!strcmp(it->key, INGEST_RENAME_TAG))
			return *it->text ? state_run_rename(st, r, it->text, err) : 0;
		if (!strcmp(it->key, EVENT_EXPORT_TAG))
			return 0;
		rc = state_key(st, it->key, &key, err);
		return rc ? rc : db_run(state_db(st), DB_tag_put, err, "iit", r->id, key, it->text);
	case EVENT_ENV:
		rc = state_key(st, it->key, &key, err);
		return rc ? rc : db_run(state_db(st), DB_environment_put, err, "iit", r->id, key, it->text);
	case EVENT_NOTE:
		return apply_note(st, r, it->text, EDITING, err);
	case EVENT_TEXT:
		return put_journal_text(st, r, it, err);
	case EVENT_CONSOLE:
	case EVENT_CODE:
	case EVENT_ALERT:
	case EVENT_FILE:
	case EVENT_OTHER:
		return told_put(st, r, w, it, err);
	case EVENT_INPUT:
		return input_put(st, r, it->input, err);
	case EVENT_STATUS:
	case EVENT_HPARAMS_END:
		return put_status(st, r, w, it, err);
	case EVENT_SESSION:
		return restart_foreign(st, r, w, it, err);
	case EVENT_HPARAMS_START:
		if (it->end_ms > 0 && it->end_ms < r->start_ms)
			r->start_ms = it->end_ms;
		return 0;
	default:
		return 0;
	}
}

/* Stores the order across series of the points of an imported file. */
static int put_arrival_order(struct state *st, const struct state_run *r, const struct intake *in, struct err *err)
{
	int64_t *ids = arena_array(in->arena, in->series_count + 1, sizeof(*ids));
	struct buf b;
	size_t i;
	int rc;

	for (i = 0; i < in->series_count; i++)
		ids[i] = in->series[i].id;
	buf_init(&b, SIZE_MAX);
	order_encode(&b, ids, in->series_count, in->order, in->point_count);
	rc = db_run(state_db(st), DB_arrival_add, err, "ib", r->id, b.data, b.len);
	buf_done(&b);
	return rc;
}

/* Items may end the run again, so a wrong "killed" is withdrawn first. */
static int put_journal_items(struct state *st, struct state_run *r, struct state_writer *w, struct change *c,
			     struct err *err)
{
	const struct intake *in = &c->in;
	struct apply_points a = { .rank = w->rank, .segment = w->segment, .tolerant = true };
	int64_t now = clock_wall_ms(), heard = in->last_ms;
	const struct intake_item *it;
	const struct intake_problem *p;
	int rc = 0;

	if (in->spoke) {
		if (heard == INT64_MIN)
			heard = latest_record_ms(c);
		if (!c->op.journal.backlog && llabs(now - heard) < LIVE_MS)
			heard = now;
		r->last_ms = heard > r->last_ms ? heard : r->last_ms;
		state_mark(st, r, false);
		if (now - heard < SEGMENT_LOST_MS)
			rc = segment_alive(st, r, err);
	}
	w->annotates = c->op.journal.foreign && c->op.journal.foreign->annotates;
	for (it = in->items; it && !rc; it = it->next) {
		rc = put_journal_item(st, r, w, it, err);
		state_mark(st, r, true);
	}
	for (p = in->problems; p && !rc; p = p->next)
		rc = apply_problem(st, r, p->text, p->count, err);
	a.segment = w->segment;
	if (!rc)
		rc = apply_points(st, r, &a, in, err);
	if (!rc && w->ordered && in->point_count)
		rc = put_arrival_order(st, r, in, err);
	return rc;
}

/* A run in an old folder is not running, nor is an imported file: it is a copy. A later part moves its end; a journal
 * read later may still set how it ended. */
static int end_silent_run(struct state *st, struct state_run *r, const struct state_writer *w, const struct change *c,
			  struct err *err)
{
	bool silent = w->ordered || clock_wall_ms() - r->last_ms >= SEGMENT_LOST_MS;

	if (!c->in.spoke || !r->beats || !silent || (strcmp(r->status, "running") && !r->inferred))
		return 0;
	return segment_lost(st, r, w->ordered || w->rank == EVENT_RANK_RUN ? "finished" : "killed", err);
}

static void report_damage(struct change *c)
{
	if (!c->intake_code)
		return;
	c->res.code = c->intake_code;
	c->res.err = c->intake_err;
}

/* Finds or adds the run and reads its writer; *ret_writer stays NULL when the answer is already in c->res. */
static int find_writer(struct state *st, struct change *c, struct state_run **ret_run, struct state_writer **ret_writer,
		       struct err *err)
{
	struct err why = ERR_INIT;
	int rc = state_run(st, c->op.run, ret_run, &why);

	if (rc == ERR_GONE) {
		c->res.code = rc;
		c->res.err = why;
		return 0;
	}
	if (!rc) {
		rc = change_may_write(st, c, (*ret_run)->experiment_id, err);
		if (rc == ERR_NOENT)
			return change_refuse_name(c); /* as if the run were not there */
		if (rc <= 0)
			return rc;
		rc = 0;
	}
	if (rc && rc != ERR_NOENT) {
		*err = why;
		return rc;
	}
	if (rc) {
		if (c->op.journal.offset)
			return starts_beyond_end(c, 0);
		if (!c->in.end)
			return 0;
		rc = make_journal_run(st, c, ret_run, err);
		if (rc || c->res.code)
			return rc;
	}
	return state_writer(st, *ret_run, c->op.journal.writer, ret_writer, err);
}

/* Stores bytes that begin at the durable offset, and advances it. */
static int append_journal(struct state *st, struct state_run *r, struct state_writer *w, struct change *c,
			  struct err *err)
{
	int rc = w->loaded ? 0 : begin_writer(st, r, c, w, err);

	if (!rc)
		rc = put_journal_items(st, r, w, c, err);
	if (!rc)
		rc = db_run(state_db(st), DB_writer_put, err, "iii", w->id, (int64_t)c->in.end,
			    c->in.last_ms == INT64_MIN ? r->last_ms : c->in.last_ms);
	if (!rc)
		rc = end_silent_run(st, r, w, c, err);
	if (rc)
		return rc;
	w->durable = c->in.end;
	c->res.accepted = c->in.point_count;
	c->res.rejected = c->in.rejected;
	return 0;
}

/* Stores the bytes after the durable offset; bytes that begin before it are requested again. */
static int apply_journal(struct state *st, struct change *c, struct err *err)
{
	struct state_run *r = NULL;
	struct state_writer *w = NULL;
	int rc;

	clamp_record_times(c);
	rc = find_writer(st, c, &r, &w, err);

	if (!rc && !w && !c->res.code)
		report_damage(c);
	if (rc || !w)
		return rc;
	c->res.durable = w->loaded ? w->durable : 0;
	if (c->op.journal.offset > c->res.durable)
		return starts_beyond_end(c, c->res.durable);
	if (c->in.end > c->res.durable) {
		c->res.overtaken = c->op.journal.offset < c->res.durable;
		if (c->res.overtaken || change_awaits_points(c, r))
			return 0;
		rc = w->loaded ? 0 : refuse_second_training(st, r, c, err);
		if (!rc && !c->res.code)
			rc = append_journal(st, r, w, c, err);
		if (rc || c->res.code)
			return rc;
		c->res.durable = w->durable;
	}
	report_damage(c);
	return 0;
}

/* Stores bytes that begin at the durable offset and texts of the run together, or nothing. */
static int apply_records(struct state *st, struct change *c, struct err *err)
{
	const struct ingest_texts *texts = c->op.more;
	struct state_run *r = NULL;
	struct state_writer *w = NULL;
	int rc;

	clamp_record_times(c);
	rc = find_writer(st, c, &r, &w, err);
	if (rc || !w || c->res.code)
		return rc;
	memcpy(c->res.id, r->uuid, sizeof(r->uuid));
	c->res.durable = w->loaded ? w->durable : 0;
	c->res.overtaken = c->op.journal.offset != c->res.durable;
	if (c->res.overtaken || change_awaits_points(c, r))
		return 0;
	rc = append_journal(st, r, w, c, err);
	for (size_t i = 0; i < texts->count && !rc; i++)
		rc = db_run(state_db(st), DB_run_text_put, err, "itt", r->id, texts->items[i].key,
			    texts->items[i].value);
	for (size_t i = 0; i < texts->line_count && !rc; i++)
		rc = told_line(st, r, w, &texts->lines[i], err);
	for (size_t i = 0; i < texts->problem_count && !rc; i++)
		rc = apply_problem(st, r, texts->problems[i], 1, err);
	c->res.durable = w->durable;
	report_damage(c);
	return rc;
}

static void copy_records_op(struct change *c, const struct ingest_op *op)
{
	const struct ingest_texts *from = op->more;
	struct ingest_texts *texts = arena_alloc(c->in.arena, sizeof(*texts));

	change_copy(c, op);
	*texts = (struct ingest_texts){ .items = change_dup_pairs(c->in.arena, from->items, from->count),
					.count = from->count };
	for (size_t i = 0; i < from->line_count; i++) {
		struct ingest_line line = from->lines[i];

		line.text = change_dup(c->in.arena, line.text);
		list_push(c->in.arena, (struct ingest_line **)(uintptr_t)&texts->lines, &texts->line_count, line);
	}
	for (size_t i = 0; i < from->problem_count; i++)
		list_push(c->in.arena, (const char ***)(uintptr_t)&texts->problems, &texts->problem_count,
			  change_dup(c->in.arena, from->problems[i]));
	c->op.more = texts;
	for (size_t i = 0; i < from->count; i++)
		c->text_bytes += strlen(from->items[i].value);
}

const struct change_ops change_records = { .name = "records",
					   .judges = true,
					   .check = check_journal_op,
					   .copy = copy_records_op,
					   .decode = decode_journal_op,
					   .apply = apply_records };

/* Stores where the event files of a run are: a new path of one, or that all are gone. */
static int apply_source(struct state *st, struct change *c, struct err *err)
{
	static const struct ingest_kv gone = { INGEST_SOURCE_TAG, INGEST_SOURCE_GONE };
	struct state_run *r;
	int rc = change_need_run(st, c, &r, err);

	if (rc <= 0)
		return rc;
	if (!c->op.journal.writer) {
		rc = db_run(state_db(st), DB_writer_paths_clear, err, "i", r->id);
		return rc ? rc : apply_tags(st, r, &gone, 1, err);
	}
	rc = db_run(state_db(st), DB_writer_path_put, err, "itt", r->id, c->op.journal.writer, c->op.journal.path);
	if (!rc)
		rc = apply_untag(st, r, INGEST_SOURCE_TAG, err);
	return rc < 0 ? rc : 0;
}

const struct change_ops change_source = { .name = "source", .check = change_check_run, .apply = apply_source };

const struct change_ops change_journal = { .name = "journal",
					   .judges = true,
					   .check = check_journal_op,
					   .decode = decode_journal_op,
					   .apply = apply_journal };
