/* SPDX-License-Identifier: Apache-2.0 */
/* apply.c: writes points, params, tags, patches, data sets, console lines, alerts and media of a run as rows. Knows
 * no kind of change. */
#include "web/store/write/apply.h"

#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/clock.h"
#include "tracker/base/sha256.h"
#include "tracker/base/text.h"
#include "tracker/event/event_encode.h"
#include "tracker/event/event_media.h"
#include "tracker/mem/mem.h"
#include "web/store/points/chunk.h"
#include "web/store/write/segment.h"

/* --- data sets ------------------------------------------------------------------------------------------------ */

static int put_dataset(struct state *st, int64_t experiment, const struct ingest_dataset *d, int64_t *ret,
		       struct err *err)
{
	int rc = db_run(state_db(st), DB_dataset_add, err, "itttttt", experiment, d->name, d->digest, d->source_type,
			d->source, d->schema, d->profile);

	if (rc)
		return rc;
	rc = db_int(state_db(st), ret, DB_dataset_find, err, "itt", experiment, d->name, d->digest);
	return rc > 0 ? 0 : rc ? rc : err_set(err, ERR_IO, "store: a data set is missing: run dptrack doctor");
}

int input_put(struct state *st, struct state_run *r, const struct ingest_dataset *d, struct err *err)
{
	int64_t dataset = 0, there;
	size_t i;
	int rc = put_dataset(st, r->experiment_id, d, &dataset, err);

	if (rc)
		return rc;
	rc = db_int(state_db(st), &there, DB_run_dataset_find, err, "ii", r->id, dataset);
	if (rc)
		return rc < 0 ? rc : 0;
	rc = db_run(state_db(st), DB_run_dataset_add, err, "ii", r->id, dataset);
	for (i = 0; i < d->tag_count && !rc; i++)
		rc = db_run(state_db(st), DB_run_dataset_tag_add, err, "iitt", r->id, dataset, d->tags[i].key,
			    d->tags[i].value);
	return rc;
}

/* --- records of a run ----------------------------------------------------------------------------------------- */

/* Console lines are numbered from 0 per rank and segment, in order of arrival. */

static int put_console(struct state *st, const struct state_run *r, const struct state_writer *w,
		       const struct intake_item *it, struct err *err)
{
	struct db *d = state_db(st);
	int64_t first = 0;
	int rc = db_int(d, &first, DB_console_end, err, "iii", r->id, (int64_t)w->rank, (int64_t)w->segment);

	if (rc < 0)
		return rc;
	return db_run(d, DB_console_add, err, "iiiiiib", r->id, (int64_t)w->rank, (int64_t)w->segment, first, it->count,
		      it->time_ms, it->bytes, it->len);
}

/* Copies the lines of a row with one of them replaced. */
static void replace_line(struct buf *to, struct event_span rest, int64_t number, const struct console_line *with)
{
	struct console_line line;

	for (; console_next(&rest, &line) > 0; number--)
		console_add(to, number ? &line : with);
}

int told_line(struct state *st, const struct state_run *r, const struct state_writer *w, const struct ingest_line *line,
	      struct err *err)
{
	struct console_line with = { .stream = line->stream, .text = { line->text, strlen(line->text) } };
	struct db *d = state_db(st);
	struct db_rows *q;
	struct buf bytes;
	int64_t id, at;
	int rc =
		db_start(d, &q, DB_console_at, err, "iiii", r->id, (int64_t)w->rank, (int64_t)w->segment, line->number);

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc;
	id = db_i64(q, COL_console_at_id);
	at = db_i64(q, COL_console_at_time_ms);
	with.ms = line->time_ms > at ? line->time_ms - at : 0;
	buf_init(&bytes, LIMIT_record_bytes);
	replace_line(&bytes,
		     (struct event_span){ db_blob(q, COL_console_at_bytes),
					  (const unsigned char *)db_blob(q, COL_console_at_bytes) +
						  db_bytes(q, COL_console_at_bytes) },
		     line->number - db_i64(q, COL_console_at_first_line), &with);
	db_stop(q);
	rc = buf_failed(&bytes) ? 0 : db_run(d, DB_console_put, err, "ib", id, bytes.data, bytes.len);
	buf_done(&bytes);
	return rc;
}

/* Finds the row of a content, or adds it. */
static int find_or_add_content(struct db *d, const struct told_media *t, int64_t *ret, struct err *err)
{
	const unsigned char *bytes = t->bytes;
	struct media m;
	size_t file;
	int rc = db_int(d, ret, DB_content_find, err, "t", t->digest);

	if (rc)
		return rc < 0 ? rc : 0;
	if (media_read((struct event_span){ bytes, bytes + t->len }, &m))
		return err_set(err, ERR_DAMAGED, "store: a file's content is missing: run dptrack doctor");
	file = (size_t)(m.bytes.end - m.bytes.at);
	rc = db_run(d, DB_content_add, err, "ttiiib", t->digest, media_type(&m), (int64_t)(file ? file : t->len),
		    (int64_t)(m.width & INT32_MAX), (int64_t)(m.height & INT32_MAX), t->bytes, t->len);
	*ret = db_last_id(d);
	return rc;
}

int told_media(struct state *st, const struct state_run *r, const struct told_media *m, struct err *err)
{
	struct told_media known = *m;
	char digest[65];
	int64_t key, content;
	int rc = state_key(st, m->key, &key, err);

	if (!m->digest) {
		sha256_hex(m->bytes, m->len, digest);
		known.digest = digest;
	}
	if (!rc)
		rc = find_or_add_content(state_db(st), &known, &content, err);
	return rc ? rc
		  : db_run(state_db(st), DB_media_add, err, "iiiiiidi", r->id, key, m->kind, (int64_t)m->rank,
			   (int64_t)m->segment, m->step, m->wall_time, content);
}

static int put_media(struct state *st, const struct state_run *r, const struct state_writer *w,
		     const struct intake_item *it, struct err *err)
{
	int rank = it->rank != EVENT_RANK_DEFAULT ? it->rank : w->rank > 0 ? w->rank : EVENT_RANK_RUN;

	return told_media(st, r, &(struct told_media){ .key = it->key, .kind = it->count, .rank = rank,
						       .segment = w->segment, .step = it->step,
						       .wall_time = it->wall_time, .bytes = it->bytes,
						       .len = it->len, .digest = it->digest }, err);
}

int told_put(struct state *st, const struct state_run *r, const struct state_writer *w, const struct intake_item *it,
	     struct err *err)
{
	struct db *d = state_db(st);

	if (it->kind == EVENT_CONSOLE)
		return put_console(st, r, w, it, err);
	if (it->kind == EVENT_OTHER)
		return put_media(st, r, w, it, err);
	if (it->kind == EVENT_CODE)
		return db_run(d, DB_code_put, err, "iitt", r->id, (int64_t)w->segment, it->key, it->text);
	if (it->kind == EVENT_FILE)
		return db_run(d, DB_file_put, err, "itit", r->id, it->key, it->count, it->text);
	return db_run(d, DB_told_add, err, "iiiiiitt", r->id, (int64_t)w->rank, (int64_t)w->segment, it->step,
		      it->time_ms, it->count, it->key, it->text);
}

/* --- params --------------------------------------------------------------------------------------------------- */

int params_find(struct state *st, struct params_lookup *l, struct err *err)
{
	struct db *d = state_db(st);
	struct db_rows *q;
	struct buf names;
	size_t i;
	int rc;

	l->values = arena_array(l->arena, l->count + 1, sizeof(*l->values));
	for (i = 0; i < l->count; i++)
		l->values[i] = NULL;
	if (!l->count || !l->run->params)
		return 0;
	array_begin(&names);
	for (i = 0; i < l->count; i++)
		array_text(&names, l->kv[i].key);
	rc = db_start(d, &q, DB_params_by_names, err, "it", l->run->id, array_end(&names));
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		l->values[db_i64(q, COL_params_by_names_place) - 1] = db_text(l->arena, q, COL_params_by_names_value);
	buf_done(&names);
	return rc;
}

int params_add(struct state *st, struct state_run *r, const struct ingest_kv *kv, size_t n, struct err *err)
{
	struct db_batch b;
	size_t i;
	int rc = apply_expect_keys(st, kv, n, err);

	if (!n)
		return rc;
	db_batch_init(&b, state_db(st), DB_params_add, "iit");
	for (i = 0; i < n && !rc; i++) {
		int64_t key;

		rc = state_key(st, kv[i].key, &key, err);
		if (!rc)
			rc = db_batch_add(&b, err, r->id, key, kv[i].value);
	}
	if (!rc)
		rc = db_batch_run(&b, err);
	db_batch_drop(&b);
	r->params = -1;
	if (!rc)
		rc = state_count_params(st, r, err);
	if (!rc && r->params > LIMIT_params_per_run)
		rc = err_set(err, ERR_LIMIT, "run %s would have more than %d params", r->uuid,
			     (int)LIMIT_params_per_run);
	state_mark(st, r, true);
	return rc;
}

static int point_rank(const struct apply_points *a, const struct intake_series *s)
{
	if (s->rank != EVENT_RANK_DEFAULT)
		return s->rank;
	return a->rank > 0 ? a->rank : STATE_RUN_LEVEL;
}

/* One row of the ingest log while it is built. */
struct new_log_row {
	struct state *st;
	struct state_run *r;
	const struct apply_points *a;
	struct buf pack;
};

/* Packs the points of one series and adds them to its visible summary. */
static int put_series(struct new_log_row *row, struct intake_series *s, struct err *err)
{
	struct state *st = row->st;
	struct state_run *r = row->r;
	const struct apply_points *a = row->a;
	struct state_series_key k = { .run_id = r->id, .rank = point_rank(a, s), .segment = a->segment };
	const struct state_segment *seg = state_segment(r, a->segment);
	bool epochs = hide_counts_epochs(s->key);
	int64_t id, hide;
	struct state_metric *m;
	size_t i;
	int rc;

	rc = state_key(st, s->key, &k.key_id, err);
	if (!rc)
		rc = state_series(st, r, &k, &id, err);
	if (rc)
		return rc;
	s->id = id;
	pack_series(&row->pack, id, s->points, s->count);
	if (k.rank != STATE_RUN_LEVEL)
		return 0;
	if (spike_watches(s->key))
		rc = state_watch(st, r, &(struct state_arrived){ k.key_id, id, s->points, s->count }, err);
	if (rc)
		return rc;
	rc = state_metric(st, r, k.key_id, &m, err);
	if (rc)
		return rc;
	hide = hide_from(seg ? &seg->hide : NULL, s->key);
	for (i = 0; i < s->count; i++) {
		if (hide_has(hide, s->points[i].step))
			continue;
		sum_add(&m->sum, &s->points[i]);
		if (!epochs && s->points[i].step > r->last_step)
			r->last_step = s->points[i].step;
	}
	state_metric_mark(st, m);
	return 0;
}

/* A series of a journal beyond a limit is left out and listed as a problem; other operations are refused. */
static int put_series_within_limits(struct new_log_row *row, struct intake_series *s, struct err *err)
{
	char text[300];
	int rc = put_series(row, s, err);

	if (rc != ERR_LIMIT || !row->a->tolerant)
		return rc;
	snprintf(text, sizeof(text), "more than %d metric keys: the points of some were left out",
		 (int)LIMIT_keys_per_run);
	return apply_problem(row->st, row->r, text, s->count, err);
}

/* Writes one row of the ingest log: n series. */
static int put_log_row(struct new_log_row *row, struct intake_series *series, size_t n, struct err *err)
{
	struct buf *pack = &row->pack;
	int64_t points = 0;
	size_t i;
	int rc = 0;

	buf_init(pack, SIZE_MAX);
	pack_begin(pack);
	for (i = 0; i < n && !rc; i++) {
		points += (int64_t)series[i].count;
		rc = put_series_within_limits(row, &series[i], err);
	}
	pack_end(pack);
	if (!rc)
		rc = db_run(state_db(row->st), DB_log_add, err, "iib", row->r->id, points, pack->data, pack->len);
	buf_done(pack);
	if (!rc)
		state_logged(row->st, row->r, points);
	return rc;
}

uint64_t apply_log_rows(const struct intake *in)
{
	return in->point_count ? (in->series_count + APPLY_ROW_SERIES - 1) / APPLY_ROW_SERIES : 0;
}

int apply_expect(struct state *st, struct state_run *r, const struct apply_points *a, const struct intake *in,
		 struct err *err)
{
	struct state_expected *all = mem_array(in->series_count + 1, sizeof(*all));
	size_t i;
	int rc;

	for (i = 0; i < in->series_count; i++)
		all[i] = (struct state_expected){ in->series[i].key, point_rank(a, &in->series[i]) };
	rc = state_expect(st, r, &(struct state_batch){ all, in->series_count, a->segment }, err);
	free(all);
	return rc;
}

int apply_points(struct state *st, struct state_run *r, const struct apply_points *a, const struct intake *in,
		 struct err *err)
{
	struct new_log_row row = { .st = st, .r = r, .a = a };
	size_t at, n;
	int rc;

	if (!in->point_count)
		return 0;
	rc = apply_expect(st, r, a, in, err);
	for (at = 0; at < in->series_count && !rc; at += n) {
		n = in->series_count - at < APPLY_ROW_SERIES ? in->series_count - at : APPLY_ROW_SERIES;
		rc = put_log_row(&row, &in->series[at], n, err);
	}
	if (!rc)
		state_mark(st, r, true);
	return rc;
}

int apply_problem(struct state *st, struct state_run *r, const char *text, uint64_t count, struct err *err)
{
	state_mark(st, r, true);
	return db_run(state_db(st), DB_problem_add, err, "itii", r->id, text, clock_wall_ms(), (int64_t)count);
}

int apply_expect_keys(struct state *st, const struct ingest_kv *kv, size_t n, struct err *err)
{
	const char **names = mem_array(n + 1, sizeof(*names));
	size_t i;
	int rc;

	for (i = 0; i < n; i++)
		names[i] = kv[i].key;
	rc = state_expect_keys(st, names, n, err);
	free(names);
	return rc;
}

/* MLflow's clients store the note of a run in this tag; tag and note are kept equal. */
#define NOTE_TAG "mlflow.note.content"

int apply_note(struct state *st, const struct state_run *r, const char *text, const char *editing, struct err *err)
{
	int rc;

	editing = editing ? editing : "";
	rc = db_run(state_db(st), DB_note_keep, err, "itt", r->id, text, editing);
	if (!rc)
		rc = db_run(state_db(st), DB_note_put, err, "itti", r->id, text, editing, clock_wall_ms());
	return rc ? rc : db_run(state_db(st), DB_note_trim, err, "ii", r->id, (int64_t)LIMIT_editions - 2);
}

int apply_tags(struct state *st, struct state_run *r, const struct ingest_kv *kv, size_t n, struct err *err)
{
	size_t i;
	int rc = apply_expect_keys(st, kv, n, err);

	for (i = 0; i < n && !rc; i++) {
		int64_t key;

		rc = state_key(st, kv[i].key, &key, err);
		if (!rc)
			rc = db_run(state_db(st), DB_tag_put, err, "iit", r->id, key, kv[i].value);
		if (!rc && !strcmp(kv[i].key, NOTE_TAG))
			rc = apply_note(st, r, kv[i].value, NULL, err);
	}
	if (n)
		state_mark(st, r, true);
	return rc;
}

void apply_draw_id(char to[33])
{
	if (text_random_hex(to, 16))
		memcpy(to, "00000000000000000000000000000000", 33);
}

static int patch_note(struct state *st, struct state_run *r, const struct ingest_state *s, struct err *err)
{
	const char *text = s->notes;
	int64_t key;
	int rc = apply_note(st, r, text, s->editing, err);

	if (!rc)
		rc = state_key(st, NOTE_TAG, &key, err);
	if (!rc)
		rc = *text ? db_run(state_db(st), DB_tag_put, err, "iit", r->id, key, text)
			   : db_run(state_db(st), DB_tag_delete, err, "ii", r->id, key);
	state_mark(st, r, true);
	return rc;
}

int apply_patch(struct state *st, struct state_run *r, const struct ingest_op *op, struct err *err)
{
	const char *status = op->state.status ? op->state.status : r->status;
	struct state_segment news = { .final = 1, .end_ms = op->state.end_ms };
	bool ended;
	int rc = 0;

	if (op->name)
		rc = state_run_rename(st, r, op->name, err);
	if (!rc && op->state.notes)
		rc = patch_note(st, r, &op->state, err);
	if (!rc && op->move_to)
		rc = state_run_move(st, r, op->move_to, err);
	if (rc || (!op->state.status && op->state.end_ms == INGEST_NO_TIME))
		return rc;
	memcpy(news.status, status, strlen(status) + 1);
	ended = strcmp(news.status, "running") && strcmp(news.status, "scheduled");
	if (op->state.end_ms == INGEST_NO_TIME)
		news.end_ms = op->state.end_kept       ? r->end_ms
			      : !ended		       ? INT64_MIN
			      : r->end_ms != INT64_MIN ? r->end_ms
						       : clock_wall_ms();
	return segment_status(st, r, r->segment, &news, err);
}

int apply_expire(struct db *d, struct err *err)
{
	return db_run(d, DB_idempotency_expire, err, "i", clock_wall_ms() - APPLY_IDEMPOTENCY_MS);
}

int apply_untag(struct state *st, struct state_run *r, const char *key, struct err *err)
{
	int64_t there;
	int rc = db_int(state_db(st), &there, DB_tag_find, err, "it", r->id, key);

	if (rc <= 0)
		return rc;
	state_mark(st, r, true);
	rc = db_run(state_db(st), DB_tag_delete, err, "ii", r->id, there);
	if (!rc && !strcmp(key, NOTE_TAG))
		rc = apply_note(st, r, "", NULL, err);
	return rc ? rc : 1;
}
