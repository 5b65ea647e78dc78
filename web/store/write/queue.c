/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c: one list in order of arrival; a group is cut from its front. */
#include "web/store/write/queue.h"

#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/clock.h"
#include "tracker/base/thread.h"
#include "tracker/mem/mem.h"

#define GROUP_JOBS 512
/* Cost in points; a series counts as 25 because it may be new. */
#define SERIES_COST 25
#define GROUP_COST 200000
#define SMALL_COST 3000
#define HELD_MAX 64
#define PASSED_MAX 64 /* overtaken operations */

/* Which operations a group may contain. */
enum size { SIZE_ANY, SIZE_SMALL };

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t work, room;
	struct queue_job *head, **tail;
	size_t bytes, max_bytes;
	bool stopping, woken;
	char held[HELD_MAX][33];
	size_t held_count;
	bool went_ahead; /* cheap operations overtook the expensive one at the front */
};

struct job_group {
	struct queue_job *first, **end;
	size_t jobs, cost;
	const char *passed[PASSED_MAX]; /* runs of operations left for the next group */
	size_t passed_count;
};

struct queue *queue_new(size_t max_bytes)
{
	struct queue *q = mem_zalloc(sizeof(*q));

	q->tail = &q->head;
	q->max_bytes = max_bytes;
	pthread_mutex_init(&q->lock, NULL);
	cond_init(&q->work);
	pthread_cond_init(&q->room, NULL);
	return q;
}

void queue_free(struct queue *q)
{
	if (!q)
		return;
	pthread_cond_destroy(&q->work);
	pthread_cond_destroy(&q->room);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

/* Operations in the queue may wait for this one, so it is never blocked by them. */
static bool skips_queue_limit(const struct queue_job *j)
{
	return j->step || j->change.op.kind->never_waits;
}

int queue_put(struct queue *q, struct queue_job *job, struct err *err)
{
	if (!q)
		return err_set(err, ERR_NOSPC, "no space left on the disk: the store is read-only");
	pthread_mutex_lock(&q->lock);
	while (q->bytes > q->max_bytes && !q->stopping && !skips_queue_limit(job))
		pthread_cond_wait(&q->room, &q->lock);
	if (q->stopping) {
		pthread_mutex_unlock(&q->lock);
		return err_set(err, ERR_CANCELED, "the store is closing");
	}
	job->next = NULL;
	*q->tail = job;
	q->tail = &job->next;
	q->bytes += job->bytes;
	pthread_cond_signal(&q->work);
	pthread_mutex_unlock(&q->lock);
	return 0;
}

static bool is_barrier(const struct queue_job *j)
{
	return j->change.op.kind->after_all;
}

static size_t job_cost(const struct queue_job *j)
{
	const struct change *c = &j->change;

	return 1 + c->in.point_count + SERIES_COST * c->in.series_count + c->op.logged.param_count +
	       c->op.logged.tag_count;
}

static bool is_run_passed(const struct job_group *g, const char *run)
{
	size_t i;

	for (i = 0; run && i < g->passed_count; i++)
		if (!g->passed[i] || !strcmp(g->passed[i], run))
			return true;
	return false;
}

static bool fits_in_group(const struct job_group *g, const struct queue_job *j, enum size size)
{
	size_t cost = job_cost(j);

	if (is_run_passed(g, j->change.op.run))
		return false;
	if (cost <= SMALL_COST || size == SIZE_SMALL)
		return cost <= SMALL_COST;
	return !g->first || (!g->passed_count && g->cost + cost <= GROUP_COST);
}

static struct queue_job *unlink_job(struct queue *q, struct queue_job **at)
{
	struct queue_job *j = *at;

	*at = j->next;
	if (!*at)
		q->tail = at;
	q->bytes -= j->bytes;
	j->next = NULL;
	j->held = false;
	return j;
}

static size_t find_held(const struct queue *q, const char *run)
{
	size_t i = 0;

	while (i < q->held_count && strcmp(q->held[i], run))
		i++;
	return i;
}

static bool is_job_held(const struct queue *q, const struct queue_job *j)
{
	return q->held_count && j->change.op.run && find_held(q, j->change.op.run) < q->held_count;
}

/* Unlinks operations from the front that fit into one commit. Skips held runs; a step or a barrier ends the group. */
static struct queue_job *cut_group(struct queue *q, enum size size)
{
	struct job_group g = { .end = &g.first };
	struct queue_job **at = &q->head, *j;

	while ((j = *at) && g.jobs < GROUP_JOBS && g.passed_count < PASSED_MAX) {
		if (is_job_held(q, j)) {
			at = &j->next;
			continue;
		}
		if (j->step)
			return g.first || g.passed_count || size == SIZE_SMALL ? g.first : unlink_job(q, at);
		if (is_barrier(j) && g.passed_count)
			break;
		if (!fits_in_group(&g, j, size)) {
			g.passed[g.passed_count++] = j->change.op.run;
			at = &j->next;
			continue;
		}
		g.cost += job_cost(j);
		g.jobs++;
		*g.end = unlink_job(q, at);
		g.end = &j->next;
	}
	return g.first;
}

/* An operation larger than a group takes long. Operations that arrived during such a commit need not wait for the
 * next expensive one: cheap ones are stored first, once. */
static struct queue_job *next_group(struct queue *q)
{
	struct queue_job *group = NULL;

	if (q->head && !q->head->step && !q->went_ahead && job_cost(q->head) > GROUP_COST)
		group = cut_group(q, SIZE_SMALL);
	q->went_ahead = group != NULL;
	return group ? group : cut_group(q, SIZE_ANY);
}

struct queue_job *queue_take(struct queue *q, double wait_s, bool *ret_end)
{
	double until_s = clock_mono_s() + wait_s;
	struct queue_job *group;

	pthread_mutex_lock(&q->lock);
	group = next_group(q);
	if (!group && !q->stopping && !q->woken) {
		cond_wait_until(&q->work, &q->lock, until_s);
		group = next_group(q);
	}
	q->woken = false;
	*ret_end = q->stopping && !group;
	pthread_cond_broadcast(&q->room);
	pthread_mutex_unlock(&q->lock);
	return group;
}

struct queue_job *queue_take_small(struct queue *q)
{
	struct queue_job *group;

	pthread_mutex_lock(&q->lock);
	group = cut_group(q, SIZE_SMALL);
	pthread_cond_broadcast(&q->room);
	pthread_mutex_unlock(&q->lock);
	return group;
}

bool queue_hold(struct queue *q, const char *run)
{
	bool held = false;

	pthread_mutex_lock(&q->lock);
	if (find_held(q, run) < q->held_count) {
		held = true;
	} else if (q->held_count < HELD_MAX && !q->stopping) {
		snprintf(q->held[q->held_count++], sizeof(q->held[0]), "%s", run);
		held = true;
	}
	pthread_mutex_unlock(&q->lock);
	return held;
}

void queue_release(struct queue *q, const char *run)
{
	size_t at;

	pthread_mutex_lock(&q->lock);
	at = find_held(q, run);
	if (at < q->held_count)
		memmove(q->held[at], q->held[--q->held_count], sizeof(q->held[0]));
	pthread_cond_signal(&q->work);
	pthread_mutex_unlock(&q->lock);
}

void queue_give_back(struct queue *q, struct queue_job *job)
{
	struct queue_job **at = &q->head;

	pthread_mutex_lock(&q->lock);
	while (*at && (*at)->held)
		at = &(*at)->next;
	job->held = true;
	job->next = *at;
	*at = job;
	if (!job->next)
		q->tail = &job->next;
	q->bytes += job->bytes;
	pthread_mutex_unlock(&q->lock);
}

void queue_wake(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->woken = true;
	pthread_cond_signal(&q->work);
	pthread_mutex_unlock(&q->lock);
}

void queue_stop(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->stopping = true;
	q->held_count = 0;
	pthread_cond_broadcast(&q->work);
	pthread_cond_broadcast(&q->room);
	pthread_mutex_unlock(&q->lock);
}
