/* SPDX-License-Identifier: Apache-2.0 */
/* run_inside.h: shared by run.c, run_*.c and system_sampler.c. Private to them. */
#ifndef DPT_RUN_RUN_INSIDE_H
#define DPT_RUN_RUN_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tracker/base/arena.h"
#include "tracker/base/err.h"
#include "tracker/dptrack.h"
#include "tracker/run/console_capture.h"
#include "tracker/run/journal_file.h"
#include "tracker/run/keys.h"
#include "tracker/run/log_queue.h"
#include "tracker/run/records.h"
#include "tracker/run/run_folder.h"
#include "tracker/run/warn.h"
#include "tracker/sink/file_uploader.h"
#include "tracker/sink/journal_uploader.h"

#define RUN_FILES "files" /* in the folder of a run: the files of dptrack_file */

struct dptrack_run {
	/* 1 in the process that opened the run; the page reads as 0 in a child of fork(). */
	_Atomic(int) *is_owner;
	struct arena *arena;
	struct run_folder folder;
	char id[NAMES_ID_BYTES];
	int rank;   /* EVENT_RANK_LAUNCHER for the launcher */
	int series; /* rank of the series that dptrack_log writes */
	int segment;
	double close_wait_s;
	const char *url, *token; /* of the server; NULL: none */
	struct keys *keys;
	struct log_queue *lanes;
	struct records *records;
	struct console_capture *printed;
	struct warn *warn;
	struct journal *journal;
	struct journal_uploader *uplink;
	struct writer *writer;
	pthread_mutex_t files_lock;
	struct file_uploader *courier; /* protected by files_lock; NULL: no file yet, or no server */
	struct system_sampler *sampler; /* NULL: dptrack_system was not called */
	char gpu[48];		 /* UUID of the GPU for the sampler; "": none */
	_Atomic(int64_t) newest_step; /* the largest step logged; -1: none */
	_Atomic(uint64_t) dropped;
};

/* Returns false in a child of fork(), and for NULL. */
static inline bool run_usable(const struct dptrack_run *run)
{
	return run && atomic_load_explicit(run->is_owner, memory_order_relaxed);
}

/* ---- system_sampler.c ----
 * A thread that records system statistics (schema/event/system.def) at a fixed interval. It logs like any thread of the
 * caller. */

struct system_sampler;

/* run: borrowed until system_sampler_stop; its rank's series are written, with its newest step. */
int system_sampler_start(struct system_sampler **ret, struct dptrack_run *run, double interval_s, struct err *err);

/* Takes a last sample, unless the interval is too short, and ends the thread. NULL is fine. */
void system_sampler_stop(struct system_sampler *s);

#endif
