/* SPDX-License-Identifier: Apache-2.0 */
/* trial.h: one trial of a sweep: its process and its journals. A trial is an ordinary run of dptrain, which resumes
 * from its last checkpoint. */
#ifndef DPT_SWEEP_TRIAL_H
#define DPT_SWEEP_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tracker/base/err.h"

/* Common to all trials of a sweep. */
struct trial_place {
	const char *runs_dir, *experiment;
	const char *metric; /* the series to optimise */
	const char *parent; /* id of the sweep's run */
};

/* The run of a trial; zeroed if it was not started. */
struct trial_known {
	bool begun, tagged; /* tagged: its run names its sweep */
	char id[33];
	char dir[4096];
};

struct trial_taker { /* receives the metric's points */
	void (*take)(void *user, int64_t step, double value);
	void *user;
};

/* Finds the run of a trial and calls take for every visible point of the metric, in the order of the journals. A trial
 * that was not started has none. ERR_USAGE. */
int trial_read(struct trial_known *ret, const struct trial_place *place, const char *name,
	       const struct trial_taker *taker, struct err *err);

/* Tags the run with the id of its sweep; a failure is logged. */
void trial_tag(const struct trial_known *known, const struct trial_place *place, const char *name);

/* Starts dptrain with these arguments (with argv[0], up to a NULL) and appends its output to the file log. The child
 * gets SIGTERM when this process ends. Returns the process id, or a negative code. */
pid_t trial_start(char *const argv[], const char *log, struct err *err);

/* Waits until no process writes the log: a killed launcher may have left a trial that has not created its run yet.
 * ERR_BUSY after wait_s seconds. */
int trial_wait(const char *log, double wait_s, struct err *err);

/* Copies the last line of the log; "" if there is none. */
void trial_last_words(const char *log, char *ret, size_t n);

#endif
