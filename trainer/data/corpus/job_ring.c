/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/data/corpus/job_ring.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "tracker/base/thread.h"
#include "tracker/mem/mem.h"

#define THREADS_MAX 256

enum job_state { JOB_EMPTY, JOB_WAITING, JOB_DONE };

struct ring_job {
	struct encode_job job;
	enum job_state state;
	int rc;
	struct err err;
};

struct job_ring {
	struct job_ring_opts o;
	struct ring_job *job; /* n */
	int n, filling;
	int next, waiting; /* first waiting job, and the number of waiting jobs */
	bool stop;
	pthread_mutex_t lock;
	pthread_cond_t work, done;
	pthread_t thread[THREADS_MAX];
	int n_threads;
};

/* Thread: runs waiting jobs until r->stop. */
static void *run_jobs(void *arg)
{
	struct job_ring *r = arg;
	void *worker = r->o.open(r->o.user);

	pthread_mutex_lock(&r->lock);
	while (!r->stop) {
		struct ring_job *j = &r->job[r->next];

		if (!r->waiting) {
			pthread_cond_wait(&r->work, &r->lock);
			continue;
		}
		r->next = (r->next + 1) % r->n;
		r->waiting--;
		pthread_mutex_unlock(&r->lock);
		j->rc = r->o.run(r->o.user, worker, &j->job, &j->err);
		pthread_mutex_lock(&r->lock);
		j->state = JOB_DONE;
		pthread_cond_signal(&r->done);
	}
	pthread_mutex_unlock(&r->lock);
	r->o.close(worker);
	return NULL;
}

void job_ring_free(struct job_ring *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_broadcast(&r->work);
	pthread_mutex_unlock(&r->lock);
	for (int i = 0; i < r->n_threads; i++)
		pthread_join(r->thread[i], NULL);
	for (int i = 0; i < r->n; i++) {
		buf_done(&r->job[i].job.text);
		buf_done(&r->job[i].job.parts);
		buf_done(&r->job[i].job.tokens);
	}
	pthread_mutex_destroy(&r->lock);
	pthread_cond_destroy(&r->work);
	pthread_cond_destroy(&r->done);
	free(r->job);
	free(r);
}

int job_ring_new(struct job_ring **ret, const struct job_ring_opts *o, struct err *err)
{
	struct job_ring *r = mem_zalloc(sizeof(*r));
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	int most = o->threads ? o->threads : cores < 1 ? 1 : (int)cores;

	r->o = *o;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->work, NULL);
	pthread_cond_init(&r->done, NULL);
	most = most > THREADS_MAX ? THREADS_MAX : most;
	r->n = 2 * most + 1;
	r->job = mem_array((size_t)r->n, sizeof(*r->job));
	for (int i = 0; i < r->n; i++) {
		buf_init(&r->job[i].job.text, SIZE_MAX);
		buf_init(&r->job[i].job.parts, SIZE_MAX);
		buf_init(&r->job[i].job.tokens, SIZE_MAX);
	}
	while (r->n_threads < most && !thread_start(&r->thread[r->n_threads], run_jobs, r))
		r->n_threads++;
	if (!r->n_threads) {
		job_ring_free(r);
		return err_set(err, ERR_NOMEM, "cannot start a thread to encode texts");
	}
	*ret = r;
	return 0;
}

struct encode_job *job_ring_filling(struct job_ring *r)
{
	return &r->job[r->filling].job;
}

/* Waits until a job is done, and takes its result. */
static int take_job(struct job_ring *r, int i, struct err *err)
{
	struct ring_job *j = &r->job[i];
	int rc = 0;

	pthread_mutex_lock(&r->lock);
	while (j->state == JOB_WAITING)
		pthread_cond_wait(&r->done, &r->lock);
	pthread_mutex_unlock(&r->lock);
	if (j->state == JOB_DONE)
		rc = j->rc ? err_set(err, j->rc, "%s", j->err.text) : r->o.take(r->o.user, &j->job, err);
	buf_reset(&j->job.text);
	buf_reset(&j->job.parts);
	buf_reset(&j->job.tokens);
	j->state = JOB_EMPTY;
	return rc;
}

int job_ring_submit(struct job_ring *r, struct err *err)
{
	pthread_mutex_lock(&r->lock);
	r->job[r->filling].state = JOB_WAITING;
	r->waiting++;
	pthread_cond_signal(&r->work);
	pthread_mutex_unlock(&r->lock);
	r->filling = (r->filling + 1) % r->n;
	return take_job(r, r->filling, err);
}

int job_ring_finish(struct job_ring *r, struct err *err)
{
	int rc = job_ring_submit(r, err);

	for (int i = 1; !rc && i < r->n; i++)
		rc = take_job(r, (r->filling + i) % r->n, err);
	return rc;
}
