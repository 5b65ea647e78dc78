/* SPDX-License-Identifier: Apache-2.0 */
/* keeper.c: the thread that applies the rules of retention from time to time. */
#include <stdlib.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"
#include "tracker/base/thread.h"
#include "tracker/mem/mem.h"
#include "web/store/base/parts.h"
#include "web/store/maintenance/maintenance.h"
#include "web/store/maintenance/retention.h"

#define FIRST_S 60.0 /* the first time after the start, unless it is due sooner */
#define KEEP_OBJECTS_MS (INT64_C(7) * 86400000)

struct retention_keeper {
	struct store *s;
	double every_s;
	pthread_t thread;
	pthread_mutex_t lock; /* guards stop */
	pthread_cond_t wake;
	bool stop;
};

static bool keeper_stops(void *arg)
{
	struct retention_keeper *k = arg;
	bool stop;

	pthread_mutex_lock(&k->lock);
	stop = k->stop;
	pthread_mutex_unlock(&k->lock);
	return stop;
}

static bool is_active(const struct retention_rule *r)
{
	return r->artifact_ms != RETENTION_OFF || r->trash_ms != RETENTION_OFF || r->quota_bytes != RETENTION_OFF;
}

/* 1: there is a rule; 0: none. */
static int any_rule(struct store *s, struct err *err)
{
	struct arena *a = arena_new();
	struct retention_rules rules;
	int rc = retention_rules(s, a, &rules, err), any = !rc && is_active(&rules.all);

	for (size_t i = 0; i < rules.count && !rc && !any; i++)
		any = is_active(&rules.items[i].rule);
	arena_free(a);
	return rc ? rc : any;
}

static void apply_rules_once(struct retention_keeper *k)
{
	const struct store_gc_opts o = {
		.what = GC_RULES, .keep_objects_ms = KEEP_OBJECTS_MS, .stop = keeper_stops, .arg = k
	};
	struct store_gc_result r = { 0 };
	struct err err = ERR_INIT;
	int rc = any_rule(k->s, &err);

	if (rc > 0)
		rc = store_gc(k->s, &o, &r, &err);
	if (r.runs || r.models || r.experiments || r.artifacts)
		log_info("retention: removed %llu artifacts (%.1f MB), %llu runs, %llu models and %llu experiments; "
			 "freed %.1f MB of the store",
			 (unsigned long long)r.artifacts, (double)r.artifact_bytes * 1e-6, (unsigned long long)r.runs,
			 (unsigned long long)r.models, (unsigned long long)r.experiments, (double)r.freed_bytes * 1e-6);
	/* another process applies them, or the store is closing */
	if (rc < 0 && rc != ERR_CANCELED && rc != ERR_BUSY)
		log_warn("retention: %s: it is tried again later", err.text);
}

static void *run_keeper(void *arg)
{
	struct retention_keeper *k = arg;
	double next_s = clock_mono_s() + (k->every_s < FIRST_S ? k->every_s : FIRST_S);
	bool stop = false;

	while (!stop) {
		pthread_mutex_lock(&k->lock);
		while (!k->stop && cond_wait_until(&k->wake, &k->lock, next_s))
			;
		stop = k->stop;
		pthread_mutex_unlock(&k->lock);
		if (!stop)
			apply_rules_once(k);
		next_s = clock_mono_s() + k->every_s;
	}
	return NULL;
}

int retention_keeper_start(struct retention_keeper **ret, struct store *s, double every_s, struct err *err)
{
	struct retention_keeper *k = mem_zalloc(sizeof(*k));

	k->s = s;
	k->every_s = every_s;
	pthread_mutex_init(&k->lock, NULL);
	cond_init(&k->wake);
	if (!thread_start(&k->thread, run_keeper, k)) {
		*ret = k;
		return 0;
	}
	pthread_cond_destroy(&k->wake);
	pthread_mutex_destroy(&k->lock);
	free(k);
	return err_set(err, ERR_IO, "retention: cannot start a thread");
}

void retention_keeper_stop(struct retention_keeper *k)
{
	if (!k)
		return;
	pthread_mutex_lock(&k->lock);
	k->stop = true;
	pthread_cond_signal(&k->wake);
	pthread_mutex_unlock(&k->lock);
	pthread_join(k->thread, NULL);
	pthread_cond_destroy(&k->wake);
	pthread_mutex_destroy(&k->lock);
	free(k);
}
