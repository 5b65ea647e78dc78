/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h: the parts of an open store. Each is a pointer that only its own room looks into; store.c makes and frees
 * them. Private to web/store. */
#ifndef DPT_STORE_PARTS_H
#define DPT_STORE_PARTS_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "web/store/base/grants.h"

/* Whose store it is, of a store that is a copy for one caller (store_restrict). */
struct restriction {
	atomic_uint users;
	struct store *whole;
	enum grant_level most; /* levels above it count as this one */
	char text[];	       /* of the grants; =ID: reads the experiment with this id (store_restrict) */
};

/* The last background check that ended. */
struct last_check {
	pthread_mutex_t lock;
	const struct check_report *report; /* NULL: none yet */
	struct arena *arena;		   /* of the report */
};

struct store {
	struct restriction *restriction; /* NULL: the whole store */
	char path[PATH_MAX];
	char id[40];
	char address_key[80];
	char user[64];				    /* of the operating system, that runs this process */
	char logdir[PATH_MAX], artifacts[PATH_MAX]; /* "": none */
	int lock_fd;
	struct background_job *work, *background;
	struct last_check *last_check;
	struct columns *columns;
	struct keysets *keysets;
	struct outlines *outlines;
	struct archives *archives;
	struct archiver *archiver; /* NULL: files are not in an object store */
	struct committer *writer;
	struct readers *readers;
	struct permitted_cache *permitted;
	struct artifacts *files;
	struct token_cache *tokens;
	struct store_live *live; /* NULL: no other process writes */
};

/* s itself, or what it is a copy of. */
static inline struct store *store_whole(struct store *s)
{
	return s->restriction ? s->restriction->whole : s;
}

/* Notifies this process of commits by other processes to the same database, and them of its own. Waiting
 * streams wake up, and tokens are read again. A thread with its own connection. Private to web/store/store.c. */
struct store_live;
struct store;

/* Stop it before the other parts of the store. */
int live_start(struct store_live **ret, struct store *s, const char *address, struct err *err);
void live_stop(struct store_live *l); /* NULL is fine */

#endif
