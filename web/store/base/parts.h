/* inside.h: what the modules of web/store share about an open store. */
#ifndef DPT_STORE_INSIDE_H
#define DPT_STORE_INSIDE_H

#include <limits.h>
#include <pthread.h>
#include <stdint.h>

#include "tracker/base/arena.h"
#include "web/store/store.h"
#include "web/store/upkeep/check.h"

struct store {
	char path[PATH_MAX];
	char id[40];
	char logdir[PATH_MAX], artifacts[PATH_MAX]; /* "": none */
	int lock_fd;
	struct work *work, *background;
	pthread_mutex_t checked_lock; /* of the last background check */
	struct check_report checked;
	struct arena *checked_arena;
	struct columns *columns;
	struct outlines *outlines;
	struct committer *writer;
	struct readers *readers;
	struct artifacts *files;
	struct tokens *tokens;
};

/* Only the lock of a store, for those who work on its file; store_close releases it. */
int store_lock(struct store **ret, const char *db_path, struct err *err);

#endif
