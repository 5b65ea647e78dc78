/* SPDX-License-Identifier: Apache-2.0 */
/* group_commit.c: locks the runs of a group, applies its changes, commits, and answers. One bad operation must not
 * fail the others: a failed group is retried one by one. A disk error fails them all at once. */
#include "web/store/write/group_commit.h"

#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/clock.h"
#include "tracker/mem/mem.h"
#include "web/store/audit/audit.h"
#include "web/store/base/parts.h"
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

/* Starts the restore of an archived run, or refuses the change that adds points to it. */
static bool restore_points(struct group_commit *g, struct change *c)
{
	pthread_mutex_lock(&g->restore_lock);
	if (g->restore)
		c->res.code = g->restore(g->restore_arg, c->op.run, &c->res.err);
	else
		change_refuse(c, ERR_BUSY, "run %s is archived, and its points cannot be restored now: try again later",
			      c->op.run);
	pthread_mutex_unlock(&g->restore_lock);
	return !c->res.code;
}

/* Answers and frees the jobs; those that wait for points return to the queue. */
static void answer_jobs(struct group_commit *g, struct queue_job *jobs)
{
	struct queue_job *next;

	/* Count before replying, so that a client sees its own write in the counters. */
	pthread_mutex_lock(&g->lock);
	for (const struct queue_job *j = jobs; j; j = j->next) {
		g->stats.points += j->change.res.existed ? 0 : j->change.res.accepted;
		g->stats.records_bad += j->change.res.rejected;
	}
	pthread_mutex_unlock(&g->lock);
	for (; jobs; jobs = next) {
		struct change *c = &jobs->change;

		next = jobs->next;
		if (c->waits && restore_points(g, c)) {
			queue_give_back(g->queue, jobs);
			continue;
		}
		if (c->op.kind->settled)
			c->op.kind->settled(c->store);
		jobs->done.fn(jobs->done.arg, &c->res);
		intake_done(&c->in);
		free(jobs);
	}
}

/* Locks the runs of the group, where other processes write them, and draws numbers for those that it adds. */
static int lock_group_runs(struct group_commit *g, const struct queue_job *jobs, struct err *err)
{
	const struct queue_job *j;
	const char **uuids;
	size_t n = 0, made = 0;
	int rc;

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

static bool has_audit_entry(const struct change *c)
{
	/* a journal that cannot be read to its end was stored up to there */
	return c->about.action && (!c->res.code || c->intake_code) && !c->waits;
}

/* The entry of a change, or of the experiment that it created. */
static struct audit_entry make_audit_entry(const struct change *c, const struct change_about *b)
{
	const struct ingest_author *who = &c->author;
	const char *name = who->via && !strcmp(who->via, INGEST_VIA_COMMAND) ? c->store->user : who->name;
	struct arena *a = c->in.arena;

	return (struct audit_entry){ .time_ms = clock_wall_ms(),
				     .via = who->via ? who->via : "server",
				     .author = audit_text(a, b->author ? b->author : name),
				     .action = b->action,
				     .object = b->object,
				     .id = audit_text(a, b->id),
				     .name = audit_text(a, b->name),
				     .experiment = audit_text(a, b->experiment),
				     .detail = audit_text(a, b->detail) };
}

/* Adds the entries of the group's changes to the audit log. */
static int append_audit(struct group_commit *g, struct queue_job *jobs, struct err *err)
{
	struct audit_entry *list = NULL;
	size_t n = 0, cap = 0;
	int rc;

	for (struct queue_job *j = jobs; j; j = j->next) {
		const struct change *c = &j->change;
		const char *made = c->made_experiment;
		struct change_about experiment = {
			.action = "create", .object = "experiment", .name = made, .experiment = made
		};

		if (made) {
			experiment.id = arena_printf(c->in.arena, "%lld", (long long)c->made_experiment_id);
			mem_push(&list, &n, &cap, make_audit_entry(c, &experiment));
		}
		if (has_audit_entry(c))
			mem_push(&list, &n, &cap, make_audit_entry(c, &c->about));
	}
	rc = n ? audit_append(g->tx.db, list, n, err) : 0;
	free(list);
	return rc;
}

/* Stores a group in one transaction: locks its runs, applies each change, logs what is audited and flushes the state.
 */
static int commit_group(struct group_commit *g, struct queue_job *jobs, struct err *err)
{
	struct folding_logged logged = { 0 };
	uint64_t rev = 0, count = 0;
	int rc = transaction_begin(&g->tx, err);

	if (!rc)
		rc = lock_group_runs(g, jobs, err);
	for (struct queue_job *j = jobs; j && !rc; j = j->next) {
		struct change *c = &j->change;

		c->res = (struct ingest_result){ 0 };
		c->log_rows_gone = c->log_points_gone = 0;
		c->waits = false;
		c->about = (struct change_about){ .action = c->op.kind->action, .object = c->op.kind->object };
		rc = c->op.kind->apply(g->tx.state, c, err);
		c->made_experiment = state_made_experiment(g->tx.state, &c->made_experiment_id);
		logged.rows += c->res.accepted && !c->res.existed ? apply_log_rows(&c->in) : 0;
		logged.points += c->res.existed ? 0 : c->res.accepted;
		logged.rows_gone += c->log_rows_gone;
		logged.points_gone += c->log_points_gone;
		count++;
	}
	if (!rc)
		rc = append_audit(g, jobs, err);
	if (!rc)
		rc = state_flush(g->tx.state, &rev, err);
	rc = transaction_finish(&g->tx, rc, err);
	if (!rc)
		folding_note(&g->folding, &logged);
	group_commit_note(g, rc, err, rev, count);
	return rc;
}

void group_commit(struct group_commit *g, struct queue_job *jobs)
{
	struct err err = ERR_INIT;
	struct queue_job *j, *next;
	int rc;

	do
		rc = commit_group(g, jobs, &err);
	while (rc && db_again(g->tx.db, rc));
	g->last_commit_s = clock_mono_s();
	g->spare.some = true;
	if (rc && jobs->next && rc != ERR_NOSPC && rc != ERR_IO && !db_away(g->tx.db)) {
		for (j = jobs; j; j = next) {
			next = j->next;
			j->next = NULL;
			group_commit(g, j);
		}
		return;
	}
	err.code = rc;
	for (j = jobs; j && rc; j = j->next) {
		j->change.res = (struct ingest_result){ .code = rc, .err = err };
		j->change.waits = false;
	}
	answer_jobs(g, jobs);
}
