/* SPDX-License-Identifier: Apache-2.0 */
/* ingest.c: checks and copies an operation by its kind, then queues it to the writer's thread. */
#include "tracker/mem/mem.h"
#include "web/store/write/ingest.h"

#include <stdlib.h>

#include "web/store/base/parts.h"
#include "web/store/write/committer.h"
#include "web/store/write/queue.h"

/* Memory of the smallest operation: one block of its arena and the job itself. */
#define JOB_BYTES ((size_t)20 << 10)

static void free_job(struct queue_job *job)
{
	intake_done(&job->change.in);
	free(job);
}

/* The writer's thread judges with a copy, as the caller may be gone by then. */
static int copy_restriction(struct change *c, const struct restriction *r, struct err *err)
{
	struct grants *g = arena_alloc(c->in.arena, sizeof(*g));

	c->grants = g;
	c->most = r->most;
	return grants_parse(g, c->in.arena, r->text, err);
}

/* Copies and decodes an operation. */
static int make_job(struct queue_job **ret, struct store *s, const struct ingest_op *op, struct err *err)
{
	struct queue_job *job = mem_zalloc(sizeof(*job));
	int rc = 0;

	job->change.store = store_whole(s);
	intake_init(&job->change.in);
	rc = s->restriction ? copy_restriction(&job->change, s->restriction, err) : 0;
	if (rc) {
		free_job(job);
		return rc;
	}
	(op->kind->copy ? op->kind->copy : change_copy)(&job->change, op);
	job->change.author =
		(struct ingest_author){ op->author.via, change_dup(job->change.in.arena, op->author.name) };
	rc = op->kind->decode ? op->kind->decode(&job->change, op, err) : 0;
	if (rc) {
		free_job(job);
		return rc;
	}
	job->bytes = JOB_BYTES + op->journal.len + job->change.text_bytes +
		     job->change.in.point_count * sizeof(struct sum_point);
	*ret = job;
	return 0;
}

static int submit_op(struct store *s, const struct ingest_op *op, const struct ingest_done *done, struct err *err)
{
	struct queue_job *job = NULL;
	int rc = make_job(&job, s, op, err);

	if (rc)
		return rc;
	job->done = *done;
	rc = queue_put(committer_queue(s->writer), job, err);
	if (rc)
		free_job(job);
	return rc;
}

static int put_and_wait(struct store *s, const struct ingest_op *op, struct ingest_result *ret, struct err *err)
{
	struct waiter w;
	struct ingest_done done = waiter_init(&w);
	int rc = submit_op(s, op, &done, err);

	if (rc)
		*ret = (struct ingest_result){ .code = rc, .err = err ? *err : (struct err)ERR_INIT };
	else
		rc = waiter_wait(&w, ret, err);
	waiter_done(&w);
	return rc;
}

struct ingest_op ingest_rest(const struct ingest_op *op, uint64_t durable)
{
	struct ingest_op rest = *op;
	size_t known = (size_t)(durable - op->journal.offset);

	rest.journal.offset = durable;
	rest.journal.bytes = (const char *)op->journal.bytes + known;
	rest.journal.len -= known;
	return rest;
}

static int check_ingest_op(const struct store *s, const struct ingest_op *op, struct err *err)
{
	int rc;

	if (s->restriction && !op->kind->judges)
		return err_set(err, ERR_DENIED, "this needs a token for all experiments");
	rc = op->kind->check ? op->kind->check(op, err) : 0;

	return rc ? rc : change_check_given(op, err);
}

int ingest_submit(struct store *s, const struct ingest_op *op, const struct ingest_done *done,
		  struct ingest_result *ret, struct err *err)
{
	struct ingest_result res = { 0 };
	struct ingest_op rest = *op;
	int rc = check_ingest_op(s, op, err);

	if (rc)
		res = (struct ingest_result){ .code = rc, .err = err ? *err : (struct err)ERR_INIT };
	else if (done)
		return submit_op(s, op, done, err);
	else
		rc = put_and_wait(s, op, &res, err);
	while (!rc && res.overtaken) {
		rest = ingest_rest(&rest, res.durable);
		rc = put_and_wait(s, &rest, &res, err);
	}
	if (ret)
		*ret = res;
	return rc;
}

int ingest_durable(struct store *s, const char *run, const char *writer, uint64_t *ret, struct err *err)
{
	struct db *d;
	int64_t id, durable = 0;
	int rc;

	if (!change_is_id(run) || !change_is_id(writer))
		return err_set(err, ERR_USAGE, "a run or writer id has 32 lower-case hex digits");
	rc = readers_take_run(s, &d, run, &id, err);
	if (rc)
		return rc;
	rc = db_int(d, &durable, DB_writer_durable, err, "it", id, writer);
	readers_give(s, d);
	if (rc < 0)
		return rc;
	*ret = (uint64_t)durable;
	return 0;
}
