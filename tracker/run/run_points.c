/* run_points.c: the functions of dptrack.h that log a point: add the time, look up the key, queue it, and never wait.
 * Refused points are counted and cause a warning. Independent of what happens after the queue. */
#include "tracker/dptrack.h"

#include <math.h>

#include "tracker/base/clock.h"
#include "tracker/base/err.h"
#include "tracker/event/key.h"
#include "tracker/event/limits.h"
#include "tracker/run/run_inside.h"

static int refuse_key(struct dptrack_run *run, const char *key, int rc, const char *why)
{
	char shown[KEY_SHOWN_BYTES];

	atomic_fetch_add_explicit(&run->dropped, 1, memory_order_relaxed);
	key_show(shown, key);
	if (rc == ERR_USAGE)
		warn_post(run->warn, WARN_KEY, "points of series \"%s\" are lost: the key %s", shown, why);
	else
		warn_post(run->warn, WARN_KEY, "points of series \"%s\" are lost: the run already has %d series", shown,
			  LIMIT_keys_per_run);
	return rc;
}

static int queue_point(struct dptrack_run *run, const char *key, struct point *p)
{
	const char *why = "";
	int rc = keys_get(run->keys, key, &p->key, &why);

	if (p->step > atomic_load_explicit(&run->newest_step, memory_order_relaxed))
		atomic_store_explicit(&run->newest_step, p->step, memory_order_relaxed);
	if (rc)
		return refuse_key(run, key, rc, why);
	if (log_queue_push(run->lanes, p))
		return 0;
	atomic_fetch_add_explicit(&run->dropped, 1, memory_order_relaxed);
	return DPTRACK_LIMIT;
}

int dptrack_log(struct dptrack_run *run, int64_t step, const char *key, double value)
{
	if (!run_usable(run))
		return DPTRACK_FORKED;
	return queue_point(
		run, key,
		&(struct point){ .wall_time = clock_wall_s(), .value = value, .step = step, .rank = run->series });
}

int dptrack_log_many(struct dptrack_run *run, int64_t step, size_t n, const char *const *keys, const double *values)
{
	double now;
	int rc = 0, one;

	if (!run_usable(run))
		return DPTRACK_FORKED;
	now = clock_wall_s();
	for (size_t i = 0; i < n; i++) {
		one = queue_point(
			run, keys[i],
			&(struct point){ .wall_time = now, .value = values[i], .step = step, .rank = run->series });
		rc = one ? one : rc;
	}
	return rc;
}

int dptrack_log_rank(struct dptrack_run *run, int rank, int64_t step, const char *key, double value)
{
	if (!run_usable(run))
		return DPTRACK_FORKED;
	return dptrack_log_at(run, rank, step, key, value, clock_wall_s());
}

int dptrack_log_at(struct dptrack_run *run, int rank, int64_t step, const char *key, double value, double wall_time)
{
	if (!run_usable(run))
		return DPTRACK_FORKED;
	if (rank < EVENT_RANK_RUN || rank > LIMIT_rank || isnan(wall_time)) {
		atomic_fetch_add_explicit(&run->dropped, 1, memory_order_relaxed);
		warn_post(run->warn, WARN_KEY, "points are lost: rank %d or the time is out of range", rank);
		return DPTRACK_USAGE;
	}
	return queue_point(run, key,
			   &(struct point){ .wall_time = wall_time, .value = value, .step = step, .rank = rank });
}
