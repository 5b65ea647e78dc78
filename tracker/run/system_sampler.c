/* SPDX-License-Identifier: Apache-2.0 */
/* system_sampler.c: wakes up once a second for the fixed loop, and at every interval for a sample. */
#include <math.h>
#include <stdlib.h>

#include "tracker/base/thread.h"
#include "tracker/run/run_inside.h"
#include "tracker/system/system_sample.h"

#define LOOP_S 1.0
#define INTERVAL_LEAST_S 0.2 /* the last sample of a shorter time is skipped */

struct system_sampler {
	struct dptrack_run *run;
	double interval_s, taken_s;
	struct system_sample sample;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stop;
};

/* Logs a sample; nothing before the first step, which would number it. */
static void log_sample(struct system_sampler *s)
{
	int64_t step = atomic_load_explicit(&s->run->newest_step, memory_order_relaxed);
	double values[SAMPLE_SERIES], now = clock_wall_s();

	s->taken_s = clock_mono_s();
	sample_take(&s->sample, values);
	for (int i = 0; step >= 0 && i < SAMPLE_SERIES; i++)
		if (isfinite(values[i]))
			dptrack_log_at(s->run, s->run->rank, step, sample_key((enum sample_series)i), values[i], now);
}

/* The thread: runs the fixed loop and takes samples until it is stopped, then takes a last sample. */
static void *run_sampler(void *arg)
{
	struct system_sampler *s = arg;
	double loop_s = s->taken_s;

	pthread_setname_np(pthread_self(), "dptrack-system");
	pthread_mutex_lock(&s->lock);
	while (!s->stop) {
		double sample_s = s->taken_s + s->interval_s;

		if (cond_wait_until(&s->changed, &s->lock, fmin(sample_s, loop_s)))
			continue;
		pthread_mutex_unlock(&s->lock);
		if (clock_mono_s() >= loop_s) {
			sample_loop(&s->sample);
			loop_s = clock_mono_s() + LOOP_S;
		}
		if (clock_mono_s() >= sample_s)
			log_sample(s);
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	if (clock_mono_s() - s->taken_s >= INTERVAL_LEAST_S)
		log_sample(s);
	return NULL;
}

int system_sampler_start(struct system_sampler **ret, struct dptrack_run *run, double interval_s, struct err *err)
{
	struct system_sampler *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return err_nomem(err, "system statistics");
	s->run = run;
	s->interval_s = interval_s;
	s->taken_s = clock_mono_s();
	sample_begin(&s->sample, "", run->gpu[0] ? run->gpu : NULL);
	pthread_mutex_init(&s->lock, NULL);
	cond_init(&s->changed);
	rc = thread_start(&s->thread, run_sampler, s);
	if (rc) {
		sample_done(&s->sample);
		pthread_mutex_destroy(&s->lock);
		pthread_cond_destroy(&s->changed);
		free(s);
		return err_set_errno(err, rc, "cannot start the thread for system statistics");
	}
	*ret = s;
	return 0;
}

void system_sampler_stop(struct system_sampler *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	sample_done(&s->sample);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->changed);
	free(s);
}
