/* trial.h: one trial of a sweep: its process, and what its journals say of it. A trial is a run of dptrain like any
 * other, which goes on where its last checkpoint is. */
#ifndef DPT_SWEEP_TRIAL_H
#define DPT_SWEEP_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tracker/base/err.h"

/* What all trials of a sweep share. */
struct trial_place {
	const char *runs_dir, *experiment;
	const char *metric; /* the series that is judged */
	const char *parent; /* id of the sweep's run */
};

/* What is known of a trial that was begun; zeroed: nothing. */
struct trial_known {
	bool begun, tagged; /* tagged: its run names its sweep */
	char id[33];
	char dir[4096];
};

/* Calls take for every point of the metric that the run shows, in the journals' order. 0; a trial that was not begun
 * has none. */
int trial_read(struct trial_known *ret, const struct trial_place *place, const char *name,
	       void (*take)(void *user, int64_t step, double value), void *user, struct err *err);

/* Writes into its run whose sweep it belongs to. */
void trial_tag(const struct trial_known *known, const struct trial_place *place, const char *name);

/* Starts dptrain with these arguments (argv[0] too, up to a NULL), its output behind the file log. It is asked to end
 * when this process ends, however that happens. The process's id, or negative. */
pid_t trial_start(char *const argv[], const char *log, struct err *err);

/* Waits until nobody writes such a file any more: a launcher that was killed may have left a trial that has not told of
 * its run yet. ERR_BUSY after wait_s seconds. */
int trial_wait(const char *log, double wait_s, struct err *err);

/* The last line of such a file; "" when there is none. */
void trial_last_words(const char *log, char *ret, size_t n);

#endif
