/* alert_watch.c: wakes after commits, and periodically for silent runs. */
#include "web/store/alert/alert_watch.h"

#include <pthread.h>
#include <stdlib.h>

#include "tracker/base/clock.h"
#include "tracker/base/thread.h"
#include "web/store/alert/alert_eval.h"
#include "web/store/base/no_memory.h"
#include "web/store/store.h"
#include "web/store/write/lease.h"

#define PAUSE_S 1.0   /* between two evaluations */
#define SILENCE_S 5.0 /* without a commit */

struct alert_watch {
	struct store *s;
	struct alert_eval *judge;
	struct lease lease; /* in a team one process evaluates */
	bool post;
	struct lease posting; /* shows the evaluating process that alerts are posted */
	pthread_t thread;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t wake;
	bool news, stop;
	int handle; /* of store_watch */
};

static void wake_alert_watch(void *arg, uint64_t rev)
{
	struct alert_watch *w = arg;

	(void)rev;
	pthread_mutex_lock(&w->lock);
	w->news = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
}

/* False: stop. */
static bool wait_for_commits(struct alert_watch *w)
{
	double now = clock_mono_s(), soonest = now + PAUSE_S, latest = now + SILENCE_S;
	bool go_on;

	pthread_mutex_lock(&w->lock);
	while (!w->stop && cond_wait_until(&w->wake, &w->lock, w->news ? soonest : latest))
		;
	w->news = false;
	go_on = !w->stop;
	pthread_mutex_unlock(&w->lock);
	return go_on;
}

static void *run_alert_watch(void *arg)
{
	struct alert_watch *w = arg;

	while (wait_for_commits(w)) {
		if (w->post)
			lease_take(&w->posting, NULL);
		if (lease_take(&w->lease, NULL) > 0)
			alert_eval_look(w->judge, clock_wall_ms(), NULL);
	}
	lease_give(&w->lease);
	return NULL;
}

int alert_watch_start(struct alert_watch **ret, struct store *s, bool post, struct err *err)
{
	struct alert_watch *w = calloc(1, sizeof *w);
	int rc;

	if (!w)
		return no_memory(err);
	w->s = s;
	w->post = post;
	w->news = true; /* evaluates existing runs once the server has started */
	lease_init(&w->lease, s, "alerts");
	lease_init(&w->posting, s, ALERT_EVAL_POSTING);
	rc = alert_eval_new(&w->judge, s, post, err);
	if (rc)
		goto fail;
	pthread_mutex_init(&w->lock, NULL);
	cond_init(&w->wake);
	w->handle = store_watch(s, wake_alert_watch, w);
	if (w->handle >= 0 && !pthread_create(&w->thread, NULL, run_alert_watch, w)) {
		*ret = w;
		return 0;
	}
	rc = err_set(err, ERR_IO, "alerts: cannot start a thread");
	if (w->handle >= 0)
		store_unwatch(s, w->handle);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	alert_eval_free(w->judge);
fail:
	free(w);
	return rc;
}

void alert_watch_stop(struct alert_watch *w)
{
	if (!w)
		return;
	store_unwatch(w->s, w->handle);
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	alert_eval_free(w->judge);
	free(w);
}
