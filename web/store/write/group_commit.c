/* SPDX-License-Identifier: Apache-2.0 */
/* group_commit.c: locks the runs of a group, applies its changes, commits, and answers. One bad operation must not
 * fail the others: a failed group is retried one by one. A disk error fails them all at once. */
#include "web/store/write/group_commit.h"

#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/clock.h"
#include "tracker/mem/mem.h"
#include "web/store/write/apply.h"
#include "web/store/write/committer.h"
#include "web/store/write/queue.h"

#define TRIES 8 /* tries for a group that conflicts with another process */

void group_commit_note(struct group_commit *g, int rc, const struct err *err, uint64_t rev, uint64_t jobs)
{
	bool news;

	pthread_mutex_lock(&g->lock);
	news = !rc && rev;
	/* A refusal is the client's fault; the transaction knows whether the database is away. */
	if (rc == ERR_LIMIT || (rc && db_lost(g->tx.db))) {
		news = false;
	} else if (rc) {
		g->stats.write_error = rc;
		snprintf(g->stats.write_error_text, sizeof(g->stats.write_error_text), "%.255s", err->text);
	} else {
		g->stats.commits++;
		g->stats.batches += jobs;
		g->stats.write_error = 0;
		g->stats.write_error_text[0] = '\0';
	}
	g->stats.log_rows = g->folding.rows;
	g->stats.log_points = g->folding.points;
	pthread_mutex_unlock(&g->lock);
	if (news)
		watchers_tell(g->watchers, rev);
}

/* Updates the counters before replying, so that a client sees its own write in them. */
static void count_answers(struct group_commit *g, const struct queue_job *jobs)
{
	pthread_mutex_lock(&g->lock);
	for (; jobs; jobs = jobs->next) {
		if (jobs->held)
			continue;
		g->stats.points += jobs->change.res.existed ? 0 : jobs->change.res.accepted;
		g->stats.records_bad += jobs->change.res.rejected;
	}
	pthread_mutex_unlock(&g->lock);
}

static void answer_jobs(struct group_commit *g, struct queue_job *jobs)
{
	struct queue_job *next;

	count_answers(g, jobs);
	for (; jobs; jobs = next) {
		const struct change_ops *kind = jobs->change.op.kind;

		next = jobs->next;
		if (jobs->held) {
			memset(&jobs->change.res, 0, sizeof(jobs->change.res));
			queue_give_back(g->queue, jobs);
			continue;
		}
		if (kind->settled)
			kind->settled(jobs->change.store);
		jobs->done.fn(jobs->done.arg, &jobs->change.res);
		intake_done(&jobs->change.in);
		free(jobs);
	}
}

/* Locks the runs of the group, and draws numbers for those that it adds. */
static int lock_group_runs(struct group_commit *g, const struct queue_job *jobs, struct err *err)
{
	const struct queue_job *j;
	const char **uuids;
	size_t n = 0, made = 0;
	int rc;

	if (!db_shared(g->tx.db))
		return 0;
	for (j = jobs; j; j = j->next) {
		n++;
		made += j->change.op.kind->makes_run;
	}
	uuids = mem_array(n, sizeof(*uuids));
	for (j = jobs, n = 0; j; j = j->next)
		uuids[n++] = j->change.op.run;
	rc = state_expect_runs(g->tx.state, made, err);
	if (!rc)
		rc = state_lock(g->tx.state, uuids, n, err);
	free(uuids);
	return rc;
}

static int request_restore(struct group_commit *g, const char *run, struct err *err)
{
	int rc = ERR_BUSY;

	pthread_mutex_lock(&g->archived_lock);
	if (!g->archived || queue_ended(g->queue))
		err_set(err, rc, "run %s is archived, and its points cannot be restored now: try again later", run);
	else
		rc = g->archived(g->archived_arg, run, err);
	pthread_mutex_unlock(&g->archived_lock);
	return rc;
}

/* Holds an operation that adds points to an archived run in the queue until its points are rows again, or refuses
 * it. */
static int hold_until_restored(struct group_commit *g, struct queue_job *j, struct err *err)
{
	struct change *c = &j->change;
	struct err why = ERR_INIT;
	struct state_run *r;
	int rc;

	if (!change_wants_points(c))
		return 0;
	rc = state_run(g->tx.state, c->op.run, &r, &why);
	if (rc == ERR_NOENT || rc == ERR_GONE || (!rc && !r->archived))
		return 0;
	if (rc) {
		*err = why;
		return rc;
	}
	j->held = queue_hold(g->queue, c->op.run);
	if (!j->held)
		return change_refuse(c, ERR_BUSY, "too many archived runs are written to at once");
	rc = request_restore(g, c->op.run, &why);
	if (!rc)
		return 0;
	j->held = false;
	queue_release(g->queue, c->op.run);
	return change_refuse(c, rc, "%s", why.text);
}

/* Stores a group in one transaction: locks its runs, applies each change and flushes the state. */
static int commit_group(struct group_commit *g, struct queue_job *jobs, struct err *err)
{
	struct folding_logged logged = { 0 };
	uint64_t rev = 0, count = 0;
	struct queue_job *j;
	int rc;

	for (j = jobs; j; j = j->next)
		j->held = false;
	rc = transaction_begin(&g->tx, err);
	if (!rc)
		rc = lock_group_runs(g, jobs, err);
	for (j = jobs; j && !rc; j = j->next) {
		struct change *c = &j->change;

		rc = hold_until_restored(g, j, err);
		if (!rc && !j->held && !c->res.code)
			rc = c->op.kind->apply(g->tx.state, c, err);
		logged.rows += c->res.accepted && !c->res.existed ? apply_log_rows(&c->in) : 0;
		logged.points += c->res.existed ? 0 : c->res.accepted;
		logged.rows_gone += c->log_rows_gone;
		logged.points_gone += c->log_points_gone;
		count++;
	}
	if (!rc)
		rc = state_flush(g->tx.state, &rev, err);
	rc = transaction_finish(&g->tx, rc, err);
	if (!rc)
		folding_note(&g->folding, &logged);
	group_commit_note(g, rc, err, rev, count);
	return rc;
}

static void fail_jobs(struct queue_job *jobs, int rc, const struct err *err)
{
	for (; jobs; jobs = jobs->next) {
		jobs->change.res = (struct ingest_result){ .code = rc, .err = *err };
		jobs->change.res.err.code = rc;
	}
}

static void reset_results(struct queue_job *jobs)
{
	for (; jobs; jobs = jobs->next) {
		memset(&jobs->change.res, 0, sizeof(jobs->change.res));
		jobs->change.log_rows_gone = jobs->change.log_points_gone = 0;
	}
}

/* Commits a group. Another process may have added the same row or won a deadlock; the next try then succeeds. */
static int commit_or_again(struct group_commit *g, struct queue_job *jobs, struct err *err)
{
	int tries, rc = commit_group(g, jobs, err);

	for (tries = 1; rc == ERR_BUSY && db_shared(g->tx.db) && !g->tx.away_since_s && tries < TRIES; tries++) {
		reset_results(jobs);
		rc = commit_group(g, jobs, err);
	}
	return rc;
}

void group_commit(struct group_commit *g, struct queue_job *jobs)
{
	struct err err = ERR_INIT;
	struct queue_job *j, *next;
	int rc = commit_or_again(g, jobs, &err);

	g->last_commit_s = clock_mono_s();
	g->spare.some = true;
	if (rc && (!jobs->next || rc == ERR_NOSPC || rc == ERR_IO || g->tx.away_since_s)) {
		fail_jobs(jobs, rc, &err);
	} else if (rc) {
		for (j = jobs; j; j = next) {
			next = j->next;
			j->next = NULL;
			reset_results(j);
			group_commit(g, j);
		}
		return;
	}
	answer_jobs(g, jobs);
}
