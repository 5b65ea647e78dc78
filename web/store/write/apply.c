/* apply.c: writes points, params, tags and patches of a run as rows. Knows no kind of change. */
#include "web/store/write/apply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "tracker/base/clock.h"
#include "tracker/event/event.h"
#include "web/store/base/no_memory.h"
#include "web/store/points/log_row.h"
#include "web/store/points/spike.h"
#include "web/store/write/segment.h"

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
	if (db_shared(state_db(st)) && spike_watches(s->key))
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
	snprintf(text, sizeof text, "more than %d metric keys: the points of some were left out",
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

	buf_init(pack, (size_t)200 << 20);
	pack_begin(pack);
	for (i = 0; i < n && !rc; i++) {
		points += (int64_t)series[i].count;
		rc = put_series_within_limits(row, &series[i], err);
	}
	pack_end(pack);
	if (!rc && buf_failed(pack))
		rc = no_memory(err);
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
	struct state_expected *all = calloc(in->series_count + 1, sizeof *all);
	size_t i;
	int rc;

	if (!all)
		return no_memory(err);
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
	const char **names = calloc(n + 1, sizeof *names);
	size_t i;
	int rc;

	if (!names)
		return no_memory(err);
	for (i = 0; i < n; i++)
		names[i] = kv[i].key;
	rc = state_expect_keys(st, names, n, err);
	free(names);
	return rc;
}

/* MLflow's clients store the note of a run in this tag; tag and note are kept equal. */
#define NOTE_TAG "mlflow.note.content"

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
			rc = db_run(state_db(st), DB_note_put, err, "it", r->id, kv[i].value);
	}
	if (n)
		state_mark(st, r, true);
	return rc;
}

void apply_draw_id(char to[33])
{
	unsigned char raw[16];
	int i;

	if (getrandom(raw, sizeof raw, 0) != (ssize_t)sizeof raw)
		memset(raw, 0, sizeof raw);
	for (i = 0; i < 16; i++)
		snprintf(to + 2 * i, 3, "%02x", raw[i]);
}

static int put_note(struct state *st, struct state_run *r, const char *text, struct err *err)
{
	int64_t key;
	int rc = db_run(state_db(st), DB_note_put, err, "it", r->id, text);

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
	struct state_segment news = { .final = 1, .end_ms = op->end_ms };
	bool ended;
	int rc = 0;

	if (op->name)
		rc = state_run_rename(st, r, op->name, err);
	if (!rc && op->notes)
		rc = put_note(st, r, op->notes, err);
	if (!rc && op->move_to)
		rc = state_run_move(st, r, op->move_to, err);
	if (rc || (!op->status && op->end_ms == INGEST_NO_TIME))
		return rc;
	memcpy(news.status, op->status ? op->status : r->status, strlen(op->status ? op->status : r->status) + 1);
	ended = strcmp(news.status, "running") && strcmp(news.status, "scheduled");
	if (op->end_ms == INGEST_NO_TIME)
		news.end_ms = op->end_kept	       ? r->end_ms
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
		rc = db_run(state_db(st), DB_note_put, err, "it", r->id, "");
	return rc ? rc : 1;
}
