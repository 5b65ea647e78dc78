/* follow.h: keeps the store up to date with a folder of runs while they grow: our journals and event files that
 * others wrote. Watches with inotify where that works, polls elsewhere. Never writes below the folder. */
#ifndef DPT_STORE_FOLLOW_H
#define DPT_STORE_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"

struct store;
struct follow;

struct follow_opts {
	const char *logdir;
	bool poll;           /* as store_paths.poll */
	double poll_s;       /* 0: 0.5 s */
	bool network;        /* as store_paths.poll: machines that name the same path mean the same folder */
	bool once;           /* for commands: end after the first scan; follow_scan_wait, then follow_stop */
};

/* Starts the follower's thread. s outlives it. Of several processes of one store one follows the folder, and another
 * one goes on when that has ended. */
int follow_start(struct follow **ret, struct store *s, const struct follow_opts *o, struct err *err);

/* Waits until every whole record that was under the folder when follow_start was called can be queried (or wait_s
 * seconds; negative: for ever). 0 done, ERR_BUSY not yet, else why the folder cannot be read. */
int follow_scan_wait(struct follow *f, double wait_s, struct err *err);

struct follow_stats {
	uint64_t files, folders, bytes_read, scans, files_bad;
	uint64_t files_waiting; /* of those found at the start: not stored yet */
	bool polling;
	bool scanning;       /* what lay under the folder at the start is not all stored yet */
	char note[256];      /* one line about what cannot be followed; "" when all is well */
};

void follow_stats(struct follow *f, struct follow_stats *ret);

void follow_stop(struct follow *f); /* NULL is fine; waits for the thread */

#endif
