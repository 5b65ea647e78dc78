/* ingest.c: checks and copies an operation, decodes its bytes, hands it to the writer's thread. */
#include "web/store/write/ingest.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/base/utf8.h"
#include "tracker/event/key.h"
#include "tracker/event/limits.h"
#include "web/store/base/parts.h"
#include "web/store/db/readers.h"
#include "web/store/write/committer.h"
#include "web/store/write/waiter.h"

/* What the smallest operation holds: one block of its arena and the job itself. */
#define JOB_BYTES ((size_t)20 << 10)

static bool is_id(const char *id)
{
	return id && strlen(id) == 32 && strspn(id, "0123456789abcdef") == 32;
}

static bool is_status(const char *status)
{
	enum event_status s;

	for (s = EVENT_RUNNING; s <= EVENT_SCHEDULED; s++)
		if (!strcmp(event_status_name(s), status))
			return true;
	return false;
}

static int check_name(const char *name, const char *what, const char *field, struct err *err)
{
	size_t len = strlen(name);

	if (len && utf8_valid(name, len) && utf8_chars(name) <= LIMIT_name_chars)
		return 0;
	err_set(err, ERR_USAGE, "%s must be 1 to %d characters of UTF-8", what, (int)LIMIT_name_chars);
	return err_field(err, "%s", field);
}

static int check_pairs(const struct ingest_kv *kv, size_t n, const char *what, struct err *err)
{
	const char *wrong;
	size_t i;

	for (i = 0; i < n; i++) {
		wrong = key_check(kv[i].key, strlen(kv[i].key));
		if (wrong) {
			err_set(err, ERR_USAGE, "%s: the key '%.60s' %s", what, kv[i].key, wrong);
			return err_field(err, "%s", what);
		}
		if (strlen(kv[i].value) > LIMIT_value_bytes || !utf8_valid(kv[i].value, strlen(kv[i].value))) {
			err_set(err, ERR_USAGE, "%s.%.60s: the value must be at most %d bytes of UTF-8", what, kv[i].key,
				(int)LIMIT_value_bytes);
			return err_field(err, "%s.%.60s", what, kv[i].key);
		}
	}
	return 0;
}

static int check_ids(const struct ingest_op *op, struct err *err)
{
	bool any = op->kind == INGEST_EXPERIMENT || op->kind == INGEST_SYNC || op->kind == INGEST_TOKEN ||
		   op->kind == INGEST_TOKEN_REVOKE || op->kind == INGEST_PURGE_MODEL ||
		   op->kind == INGEST_PURGE_EXPERIMENT || op->kind == INGEST_VACUUM || (op->kind == INGEST_RUN && !op->run);

	if (!any && !is_id(op->run))
		return err_set(err, ERR_USAGE, "'%.40s' is not a run id (32 lower-case hex digits)", op->run ? op->run : "");
	if (op->kind == INGEST_JOURNAL && !is_id(op->writer))
		return err_set(err, ERR_USAGE, "'%.40s' is not a writer id (32 lower-case hex digits)",
			       op->writer ? op->writer : "");
	return 0;
}

static int check_words(const struct ingest_op *op, struct err *err)
{
	if (op->status && !is_status(op->status)) {
		err_set(err, ERR_USAGE, "status '%.40s' is none of running, finished, failed, killed, preempted, scheduled", op->status);
		return err_field(err, "status");
	}
	if (op->notes && (strlen(op->notes) > LIMIT_note_bytes || !utf8_valid(op->notes, strlen(op->notes)))) {
		err_set(err, ERR_USAGE, "notes must be at most %d bytes of UTF-8", (int)LIMIT_note_bytes);
		return err_field(err, "notes");
	}
	return 0;
}

static int check(const struct ingest_op *op, struct err *err)
{
	int rc = check_ids(op, err);

	if (!rc && op->kind == INGEST_EXPERIMENT)
		rc = check_name(op->name ? op->name : "", "the experiment's name", "name", err);
	if (!rc && op->kind == INGEST_TOKEN)
		rc = check_name(op->name ? op->name : "", "the token's name", "name", err);
	if (!rc && (op->kind == INGEST_RUN || op->kind == INGEST_PATCH) && op->name)
		rc = check_name(op->name, "name", "name", err);
	if (!rc && op->experiment && *op->experiment)
		rc = check_name(op->experiment, "experiment", "experiment", err);
	if (!rc)
		rc = check_words(op, err);
	if (!rc)
		rc = check_pairs(op->params, op->param_count, "params", err);
	if (!rc)
		rc = check_pairs(op->tags, op->tag_count, "tags", err);
	if (!rc && op->idempotency && (!*op->idempotency || strlen(op->idempotency) > 255))
		rc = err_set(err, ERR_USAGE, "Idempotency-Key must have 1 to 255 characters");
	return rc;
}

static const char *dup(struct arena *a, const char *text, bool *failed)
{
	const char *copy = text ? arena_strdup(a, text) : NULL;

	*failed = *failed || (text && !copy);
	return copy;
}

/* Names that come from a path need not be UTF-8. */
static const char *dup_clean(struct arena *a, const char *text, bool *failed)
{
	size_t room = strlen(text) * 3 + 1;
	char *copy = arena_alloc(a, room);

	*failed = *failed || !copy;
	if (copy)
		utf8_copy(copy, room < 4 * LIMIT_name_chars ? room : 4 * LIMIT_name_chars, text, strlen(text), NULL);
	return copy;
}

static const struct ingest_kv *dup_pairs(struct arena *a, const struct ingest_kv *kv, size_t n, bool *failed)
{
	struct ingest_kv *copy = arena_array(a, n ? n : 1, sizeof *copy);
	size_t i;

	*failed = *failed || !copy;
	for (i = 0; copy && i < n; i++) {
		copy[i].key = dup(a, kv[i].key, failed);
		copy[i].value = dup(a, kv[i].value, failed);
	}
	return copy;
}

static int copy_op(struct ingest_op *to, const struct ingest_op *from, struct arena *a, struct err *err)
{
	bool failed = false;
	void *bytes;

	*to = *from;
	to->run = dup(a, from->run, &failed);
	to->experiment = dup(a, from->experiment && *from->experiment ? from->experiment : "Default", &failed);
	to->name = dup(a, from->name, &failed);
	if (from->kind == INGEST_RUN && !from->name)
		to->name = "run";
	to->status = dup(a, from->status, &failed);
	to->notes = dup(a, from->notes, &failed);
	to->params = dup_pairs(a, from->params, from->param_count, &failed);
	to->tags = dup_pairs(a, from->tags, from->tag_count, &failed);
	to->points = NULL;
	to->idempotency = dup(a, from->idempotency, &failed);
	to->token_hash = dup(a, from->token_hash, &failed);
	to->writer = dup(a, from->writer, &failed);
	to->path = dup(a, from->path, &failed);
	if (from->len) {
		bytes = arena_alloc(a, from->len);
		failed = failed || !bytes;
		if (bytes)
			memcpy(bytes, from->bytes, from->len);
		to->bytes = bytes;
	}
	if (from->foreign && !failed) {
		struct ingest_foreign *f = arena_alloc(a, sizeof *f);

		failed = !f;
		if (f) {
			f->experiment = dup_clean(a, from->foreign->experiment, &failed);
			f->name = dup_clean(a, from->foreign->name, &failed);
		}
		to->foreign = f;
	}
	return failed ? err_set(err, ERR_NOMEM, "out of memory") : 0;
}

/* The first damage ends a journal from a client; what is whole before it is stored and counts. */
static int decode(struct queue_job *job, const struct ingest_op *op, struct err *err)
{
	struct apply_job *a = &job->a;
	int rc;

	if (op->kind == INGEST_POINTS)
		return intake_points(&a->in, op, err);
	if (op->kind != INGEST_JOURNAL)
		return 0;
	rc = intake_journal(&a->in, op, op->offset, &a->intake_err);
	if (rc && rc != ERR_CORRUPT) {
		if (err)
			*err = a->intake_err;
		return rc;
	}
	if (!rc && a->in.damaged)
		rc = err_set(&a->intake_err, ERR_CORRUPT, "%s: damaged at byte %llu", op->path ? op->path : op->writer,
			     (unsigned long long)a->in.end);
	a->intake_code = rc;
	return 0;
}

static void free_job(struct queue_job *job)
{
	intake_done(&job->a.in);
	free(job);
}

static int make_job(struct queue_job **ret, const struct ingest_op *op, struct err *err)
{
	struct queue_job *job = calloc(1, sizeof *job);
	int rc;

	if (!job)
		return err_set(err, ERR_NOMEM, "out of memory");
	rc = intake_init(&job->a.in, err);
	if (!rc)
		rc = copy_op(&job->a.op, op, job->a.in.arena, err);
	if (!rc)
		rc = decode(job, op, err);
	if (rc) {
		free_job(job);
		return rc;
	}
	job->bytes = JOB_BYTES + op->len + job->a.in.point_count * sizeof(struct sum_point);
	*ret = job;
	return 0;
}

static int submit_and_wait(struct store *s, struct queue_job *job, struct ingest_result *ret, struct err *err)
{
	struct waiter w;
	int rc;

	job->done = waiter_init(&w);
	rc = queue_put(committer_queue(s->writer), job, err);
	if (rc)
		free_job(job);
	else
		rc = waiter_wait(&w, ret, err);
	waiter_done(&w);
	return rc;
}

int ingest_submit(struct store *s, const struct ingest_op *op, const struct ingest_done *done,
		  struct ingest_result *ret, struct err *err)
{
	struct queue_job *job = NULL;
	int rc = check(op, err);

	if (!rc)
		rc = make_job(&job, op, err);
	if (rc) {
		if (ret) {
			memset(ret, 0, sizeof *ret);
			ret->code = rc;
			ret->err = err ? *err : (struct err)ERR_INIT;
		}
		return rc;
	}
	if (!done)
		return submit_and_wait(s, job, ret, err);
	job->done = *done;
	rc = queue_put(committer_queue(s->writer), job, err);
	if (rc)
		free_job(job);
	return rc;
}

int ingest_durable(struct store *s, const char *run, const char *writer, uint64_t *ret, struct err *err)
{
	struct db *d;
	int64_t id, durable = 0;
	int rc;

	if (!is_id(run) || !is_id(writer))
		return err_set(err, ERR_USAGE, "a run or writer id has 32 lower-case hex digits");
	rc = readers_take(s, &d, err);
	if (rc)
		return rc;
	rc = db_int(d, &id, DB_run_id_of, err, "t", run);
	if (!rc)
		rc = readers_missing(d, run, err);
	else if (rc > 0)
		rc = db_int(d, &durable, DB_writer_durable, err, "it", id, writer);
	readers_give(s, d);
	if (rc < 0)
		return rc;
	*ret = (uint64_t)durable;
	return 0;
}
