/* apply.c: operations as changes of rows. */
#include "web/store/write/apply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "tracker/base/clock.h"
#include "tracker/event/limits.h"
#include "web/store/points/pack.h"
#include "web/store/write/change_journal.h"
#include "web/store/write/change_purge.h"
#include "web/store/write/segment.h"

int apply_refuse(struct apply_job *job, int code, const char *fmt, ...)
{
	va_list ap;

	job->res.code = code;
	job->res.err.code = code;
	va_start(ap, fmt);
	vsnprintf(job->res.err.text, sizeof job->res.err.text, fmt, ap);
	va_end(ap);
	return 0;
}

/* 1 found, 0 refused, negative failed. */
static int need_run(struct state *st, struct apply_job *job, struct state_run **ret, struct err *err)
{
	struct err why = ERR_INIT;
	int rc = state_run(st, job->op.run, ret, &why);

	if (!rc)
		return 1;
	if (rc == ERR_NOENT || rc == ERR_GONE)
		return apply_refuse(job, rc, "%s", why.text);
	if (err)
		*err = why;
	return rc;
}

/* Puts the points of one series into the pack and its visible summary. */
static int put_series(struct state *st, struct state_run *r, const struct apply_points *a, struct intake_series *s,
		      struct buf *pack, struct err *err)
{
	struct state_series_key k = { .run_id = r->id, .rank = s->rank, .segment = a->segment };
	const struct state_segment *seg = state_segment(r, a->segment);
	bool epochs = hide_counts_epochs(s->key);
	int64_t id, hide;
	struct state_metric *m;
	size_t i;
	int rc;

	if (s->rank == EVENT_RANK_DEFAULT)
		k.rank = a->rank > 0 ? a->rank : STATE_RUN_LEVEL;
	rc = state_key(st, s->key, &k.key_id, err);
	if (!rc)
		rc = state_series(st, r, &k, &id, err);
	if (rc)
		return rc;
	s->id = id;
	pack_series(pack, id, s->points, s->count);
	if (k.rank != STATE_RUN_LEVEL)
		return 0;
	rc = state_metric(st, r->id, k.key_id, &m, err);
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

/* What a journal brings beyond a limit is left out and listed; anybody else is refused. */
static int put_or_leave(struct state *st, struct state_run *r, const struct apply_points *a, struct intake_series *s,
			struct buf *pack, struct err *err)
{
	char text[300];
	int rc = put_series(st, r, a, s, pack, err);

	if (rc != ERR_LIMIT || !a->tolerant)
		return rc;
	snprintf(text, sizeof text, "more than %d metric keys: the points of some were left out", (int)LIMIT_keys_per_run);
	return apply_problem(st, r, text, s->count, err);
}

/* One row of the ingest log: the n series from `from` on. */
static int put_row(struct state *st, struct state_run *r, const struct apply_points *a, const struct intake *in, size_t from,
		   size_t n, struct err *err)
{
	struct buf pack;
	int64_t points = 0;
	size_t i;
	int rc = 0;

	buf_init(&pack, (size_t)200 << 20);
	pack_begin(&pack);
	for (i = from; i < from + n && !rc; i++) {
		points += (int64_t)in->series[i].count;
		rc = put_or_leave(st, r, a, &in->series[i], &pack, err);
	}
	pack_end(&pack);
	if (!rc && buf_failed(&pack))
		rc = err_set(err, ERR_NOMEM, "store: out of memory");
	if (!rc)
		rc = db_run(state_db(st), DB_log_add, err, "iib", r->id, points, pack.data, pack.len);
	buf_done(&pack);
	return rc;
}

uint64_t apply_log_rows(const struct intake *in)
{
	return in->point_count ? (in->series_count + APPLY_ROW_SERIES - 1) / APPLY_ROW_SERIES : 0;
}

int apply_points(struct state *st, struct state_run *r, const struct apply_points *a, const struct intake *in,
		 struct err *err)
{
	size_t at, n;
	int rc = 0;

	if (!in->point_count)
		return 0;
	for (at = 0; at < in->series_count && !rc; at += n) {
		n = in->series_count - at < APPLY_ROW_SERIES ? in->series_count - at : APPLY_ROW_SERIES;
		rc = put_row(st, r, a, in, at, n, err);
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

static int put_experiment(struct state *st, struct apply_job *job, struct err *err)
{
	int64_t id;
	int rc = state_experiment(st, job->op.name, &id, &job->res.existed, err);

	if (!rc)
		snprintf(job->res.id, sizeof job->res.id, "%lld", (long long)id);
	return rc;
}

int apply_params(struct state *st, struct state_run *r, const struct ingest_kv *kv, size_t n, struct err *err)
{
	size_t i;
	int rc = n ? state_count_params(st, r, err) : 0;

	for (i = 0; i < n && !rc; i++) {
		int64_t key;

		rc = state_key(st, kv[i].key, &key, err);
		if (!rc)
			rc = db_run(state_db(st), DB_param_add, err, "iit", r->id, key, kv[i].value);
		if (!rc)
			r->params += db_changed(state_db(st));
		if (!rc && r->params > LIMIT_params_per_run)
			rc = err_set(err, ERR_LIMIT, "run %s would have more than %d params", r->uuid, (int)LIMIT_params_per_run);
	}
	if (n)
		state_mark(st, r, true);
	return rc;
}

int apply_tags(struct state *st, struct state_run *r, const struct ingest_kv *kv, size_t n, struct err *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < n && !rc; i++) {
		int64_t key;

		rc = state_key(st, kv[i].key, &key, err);
		if (!rc)
			rc = db_run(state_db(st), DB_tag_put, err, "iit", r->id, key, kv[i].value);
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

static int put_run(struct state *st, struct apply_job *job, struct err *err)
{
	const struct ingest_op *op = &job->op;
	int64_t start = op->start_ms && op->start_ms != INGEST_NO_TIME ? op->start_ms : clock_wall_ms();
	const char *status = op->status ? op->status : "running";
	struct state_run *r;
	int rc;

	if (op->run)
		memcpy(job->res.id, op->run, 33);
	else
		apply_draw_id(job->res.id);
	rc = op->run ? state_run(st, op->run, &r, err) : ERR_NOENT;
	if (!rc)
		return apply_refuse(job, ERR_EXISTS, "run %s is there already", op->run);
	if (rc == ERR_GONE)
		return apply_refuse(job, ERR_GONE, "run %s was deleted and removed for good", op->run);
	if (rc != ERR_NOENT)
		return rc;
	rc = state_run_add(st, &(struct state_new_run){
		.uuid = job->res.id, .experiment = op->experiment, .name = op->name, .status = status, .start_ms = start },
		&r, err);
	if (!rc)
		rc = segment_open(st, r, &(struct segment_open){ .start_ms = start, .status = status }, err);
	if (!rc)
		rc = apply_params(st, r, op->params, op->param_count, err);
	return rc ? rc : apply_tags(st, r, op->tags, op->tag_count, err);
}

int apply_patch(struct state *st, struct state_run *r, const struct ingest_op *op, struct err *err)
{
	struct state_segment news = { .final = 1, .end_ms = op->end_ms };
	bool ended;
	int rc = 0;

	if (op->name)
		rc = state_run_rename(st, r, op->name, err);
	if (!rc && op->notes) {
		rc = db_run(state_db(st), DB_note_put, err, "it", r->id, op->notes);
		state_mark(st, r, true);
	}
	if (rc || (!op->status && op->end_ms == INGEST_NO_TIME))
		return rc;
	memcpy(news.status, op->status ? op->status : r->status, strlen(op->status ? op->status : r->status) + 1);
	ended = strcmp(news.status, "running") && strcmp(news.status, "scheduled");
	if (op->end_ms == INGEST_NO_TIME)
		news.end_ms = op->end_kept ? r->end_ms : !ended ? INT64_MIN : r->end_ms != INT64_MIN ? r->end_ms : clock_wall_ms();
	return segment_status(st, r, r->segment, &news, err);
}

static int add_params(struct state *st, struct apply_job *job, struct state_run *r, struct err *err)
{
	const struct ingest_op *op = &job->op;
	size_t i;

	for (i = 0; i < op->param_count; i++) {
		struct db_rows *q;
		bool differs = false;
		int rc = db_start(state_db(st), &q, DB_param_by_name, err, "it", r->id, op->params[i].key);

		if (!rc && (rc = db_next(state_db(st), q, err)) > 0) {
			const char *value = db_str(q, COL_param_by_name_value);

			differs = strcmp(value, op->params[i].value) != 0;
			if (differs)
				apply_refuse(job, ERR_EXISTS, "param '%.100s' is '%.100s' already; a param's first value holds",
				       op->params[i].key, value);
			db_stop(q);
		}
		if (rc < 0)
			return rc;
		if (differs)
			return 0;
	}
	return apply_params(st, r, op->params, op->param_count, err);
}

int apply_untag(struct state *st, struct state_run *r, const char *key, struct err *err)
{
	int64_t there;
	int rc = db_int(state_db(st), &there, DB_tag_find, err, "it", r->id, key);

	if (rc <= 0)
		return rc;
	state_mark(st, r, true);
	rc = db_run(state_db(st), DB_tag_delete, err, "ii", r->id, there);
	return rc ? rc : 1;
}

static int drop_tag(struct state *st, struct apply_job *job, struct state_run *r, struct err *err)
{
	int rc = apply_untag(st, r, job->op.name, err);

	return rc ? rc < 0 ? rc : 0 : apply_refuse(job, ERR_NOENT, "run %s has no tag '%.100s'", r->uuid, job->op.name);
}

static int add_points(struct state *st, struct apply_job *job, struct state_run *r, struct err *err)
{
	struct apply_points a = { .rank = 0, .segment = r->segment };
	int64_t accepted;
	int rc;

	if (job->op.idempotency) {
		rc = db_int(state_db(st), &accepted, DB_idempotency_get, err, "iti", r->id, job->op.idempotency,
			    clock_wall_ms() - APPLY_IDEMPOTENCY_MS);
		if (rc < 0)
			return rc;
		if (rc) {
			job->res.accepted = (uint64_t)accepted;
			job->res.existed = true;
			return 0;
		}
		rc = db_run(state_db(st), DB_idempotency_put, err, "itii", r->id, job->op.idempotency, clock_wall_ms(),
			    (int64_t)job->in.point_count);
		if (rc)
			return rc;
	}
	job->res.accepted = job->in.point_count;
	return apply_points(st, r, &a, &job->in, err);
}

static int apply_to_run(struct state *st, struct apply_job *job, struct state_run *r, struct err *err)
{
	switch (job->op.kind) {
	case INGEST_PATCH:
		return apply_patch(st, r, &job->op, err);
	case INGEST_PARAMS:
		return add_params(st, job, r, err);
	case INGEST_TAGS:
		return apply_tags(st, r, job->op.tags, job->op.tag_count, err);
	case INGEST_TAG_DELETE:
		return drop_tag(st, job, r, err);
	case INGEST_POINTS:
		return add_points(st, job, r, err);
	case INGEST_DELETE:
	case INGEST_RESTORE:
		r->deleted_ms = job->op.kind == INGEST_RESTORE ? INT64_MIN : clock_wall_ms();
		state_mark(st, r, true);
		return 0;
	default:
		return 0;
	}
}

static int put_token(struct state *st, struct apply_job *job, struct err *err)
{
	const struct ingest_op *op = &job->op;
	int64_t there;
	int rc = db_int(state_db(st), &there, DB_token_in_force, err, "t", op->name);

	if (rc > 0)
		return apply_refuse(job, ERR_EXISTS, "there is a token named '%.100s' already: revoke it or choose another name", op->name);
	return rc ? rc : db_run(state_db(st), DB_token_put, err, "ttiix", op->name, op->token_hash, (int64_t)op->token_scope,
				clock_wall_ms(), op->end_ms);
}

static int revoke_token(struct state *st, struct apply_job *job, struct err *err)
{
	const struct ingest_op *op = &job->op;
	int64_t there;
	int rc;

	if (!op->name)
		return db_run(state_db(st), DB_token_clear, err, "");
	rc = db_int(state_db(st), &there, DB_token_in_force, err, "t", op->name);
	if (!rc)
		return apply_refuse(job, ERR_NOENT, "there is no token '%.100s' to revoke", op->name);
	return rc < 0 ? rc : db_run(state_db(st), DB_token_revoke, err, "ti", op->name, clock_wall_ms());
}

int apply_job(struct state *st, struct apply_job *job, struct err *err)
{
	struct state_run *r;
	int rc;

	if (job->fn)
		return job->fn(st, job, err);
	switch (job->op.kind) {
	case INGEST_SYNC:
		return 0;
	case INGEST_JOURNAL:
		return apply_journal(st, job, err);
	case INGEST_EXPERIMENT:
		return put_experiment(st, job, err);
	case INGEST_RUN:
		return put_run(st, job, err);
	case INGEST_TOKEN:
		return put_token(st, job, err);
	case INGEST_TOKEN_REVOKE:
		return revoke_token(st, job, err);
	case INGEST_PURGE:
		return purge_run(st, job, err);
	case INGEST_PURGE_MODEL:
		return purge_model(st, job, err);
	case INGEST_PURGE_EXPERIMENT:
		return purge_experiment(st, job, err);
	case INGEST_VACUUM:
		return purge_pages(st, job, err);
	default:
		rc = need_run(st, job, &r, err);
		if (rc <= 0)
			return rc;
		memcpy(job->res.id, r->uuid, sizeof r->uuid);
		return apply_to_run(st, job, r, err);
	}
}
