/* parts.h: what an open store consists of. Each part is a pointer that its own room defines and alone looks into;
 * store.c makes and frees them. Private to web/store. */
#ifndef DPT_STORE_PARTS_H
#define DPT_STORE_PARTS_H

#include <limits.h>
#include <pthread.h>
#include <stdint.h>

#include "tracker/base/arena.h"

struct store {
	char path[PATH_MAX];
	char id[40];
	char logdir[PATH_MAX], artifacts[PATH_MAX]; /* "": none */
	int lock_fd;
	struct background_job *work, *background;
	pthread_mutex_t checked_lock; /* of the last background check */
	const struct check_report *checked; /* NULL: there was none yet */
	struct arena *checked_arena;        /* in which it lies */
	struct columns *columns;
	struct keysets *keysets;
	struct outlines *outlines;
	struct archives *archives;
	struct archiver *archiver; /* NULL: no points lie in an object store */
	struct committer *writer;
	struct readers *readers;
	struct artifacts *files;
	struct tokens *tokens;
	struct store_live *live; /* NULL: no other process writes */
};

#endif
