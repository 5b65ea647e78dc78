/* threads.h: how long the compute threads of this process waited for a core. Those are the threads that bear the name
 * of the first one, as threads do that OpenMP starts; helpers (loaders, writers) have names of their own. */
#ifndef DPT_SYSTEM_THREADS_H
#define DPT_SYSTEM_THREADS_H

#include <dirent.h>
#include <stddef.h>

#define THREADS_MAX 512 /* further ones are not looked at */

struct threads_seen {
	long id;
	double on_core_s, wait_s;
};

struct threads { /* zeroed at first; nothing in it is for reading */
	DIR *folder; /* kept open, so that looking allocates nothing */
	struct threads_seen seen[THREADS_MAX]; /* when they were last looked at */
	size_t n;
};

struct threads_use {
	double wait_s; /* of the thread that waited longest; NaN: the kernel does not count it */
	double busy;   /* threads that were on a core for a twentieth of the time or more */
	double on_core_s; /* of these together */
};

/* Since it was last called with t. seconds: the time between; root: as proc.h's, always the same. */
void threads_read(struct threads *t, const char *root, double seconds, struct threads_use *ret);
void threads_done(struct threads *t); /* a zeroed one is fine */

#endif
