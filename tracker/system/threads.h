/* threads.h: how long the compute threads of this process waited for a core. Compute threads have the name of the first
 * thread, as OpenMP's threads do; helpers (loaders, writers) have their own names. */
#ifndef DPT_SYSTEM_THREADS_H
#define DPT_SYSTEM_THREADS_H

#include <dirent.h>
#include <stddef.h>

#define THREADS_MAX 512 /* further ones are ignored */

struct threads_seen {
	long id;
	double on_core_s, wait_s;
};

struct threads { /* zeroed at first; all members are private */
	DIR *folder; /* kept open, so that a reading allocates nothing */
	struct threads_seen seen[THREADS_MAX]; /* state of the last reading */
	size_t n;
};

struct threads_use {
	double wait_s; /* of the thread that waited longest; NaN: not counted by the kernel */
	double busy;   /* number of threads that were on a core for a twentieth of the time or more */
	double on_core_s; /* sum over these */
};

/* Reads the use since the last call with t. seconds: that interval; root: as in proc.h, always the same. */
void threads_read(struct threads *t, const char *root, double seconds, struct threads_use *ret);
void threads_done(struct threads *t); /* a zeroed one is fine */

#endif
