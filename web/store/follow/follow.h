/* SPDX-License-Identifier: Apache-2.0 */
/* follow.h: keeps the store up to date with a growing folder of runs: our journals and foreign event files. Watches
 * with inotify where that works, else polls. Never writes below the folder. */
#ifndef DPT_STORE_FOLLOW_H
#define DPT_STORE_FOLLOW_H

#include "tracker/base/err.h"

struct store;
struct follow;

struct follow_opts {
	const char *logdir;
	bool poll;     /* as store_paths.poll */
	double poll_s; /* 0: 0.5 s */
	bool network;  /* as store_paths.poll: the same path on two machines is the same folder */
	bool once;     /* for commands: ends after the first scan; follow_scan_wait, then follow_stop */
};

/* Starts the follower's thread. s must outlive it. Only one process of a store follows a folder; another takes over
 * when it ends. */
int follow_start(struct follow **ret, struct store *s, const struct follow_opts *o, struct err *err);

/* Waits until all whole records that were in the folder at follow_start can be queried, for at most wait_s seconds
 * (negative: forever). 0: done, ERR_BUSY: not yet, else the error of reading the folder. */
int follow_scan_wait(struct follow *f, double wait_s, struct err *err);

struct follow_stats {
	uint64_t files, folders, bytes_read, scans, files_bad;
	uint64_t files_waiting; /* of those found at the start: not stored yet */
	bool polling;
	bool scanning;	/* files found at the start are not all stored yet */
	char note[256]; /* one line about what cannot be followed; "": none */
};

void follow_stats(struct follow *f, struct follow_stats *ret);

void follow_stop(struct follow *f); /* NULL is fine; waits for the thread */

#endif
