/* objects.h: artifacts as objects of an S3 store. A row names a file's object, whose name is drawn; a path is never
 * a key. In order: a row says that an object begins, its bytes are sent, a row makes it the file of its path. So a file
 * is whole or not there, and what a killed process leaves behind stands in a row for gc.
 * Requests to the store are made by a crew of threads of its own: threads that answer may connect to nothing, and never
 * wait for it. Private to web/store/files. */
#ifndef DPT_STORE_OBJECTS_H
#define DPT_STORE_OBJECTS_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tracker/base/sha256.h"
#include "tracker/object/object.h"
#include "web/store/base/thread_pool.h"
#include "web/store/files/artifacts.h"

#define OBJECT_NAME_BYTES 33
#define OBJECTS_PART ((size_t)8 << 20)	 /* what is sent or fetched at once */
#define OBJECTS_HELD ((size_t)256 << 20) /* of all transfers together, in memory */

struct entries;

struct objects {
	struct store *store;
	char address[OBJECT_BUCKET_BYTES + OBJECT_KEY_MAX];
	char bucket[OBJECT_BUCKET_BYTES];
	const char *prefix; /* in address */
	pthread_mutex_t lock; /* of the next two while they are made, and of the two behind them */
	struct object_client *client; /* NULL: nobody has asked for anything yet */
	struct thread_pool *crew;
	double away_until_s; /* it did not answer a moment ago */
	char lost[OBJECT_KEY_MAX + 1]; /* the object that was last found missing, where rows say that it is there */
	_Atomic bool stop;
	atomic_size_t held;
};

/* address: s3://BUCKET or s3://BUCKET/PREFIX. Asks nobody. */
int objects_new(struct objects **ret, struct store *s, const char *address, struct err *err);

/* By what was named and what the store's rows say, which are changed where they may be. *ret NULL: files lie in a
 * folder. ERR_USAGE: they lie in another object store. */
int objects_place(struct objects **ret, struct store *s, const struct artifacts_opts *opts, struct err *err);
void objects_free(struct objects *o); /* ends what is under way and waits for it; NULL is fine */

/* Reads AWS's variables and starts the threads, unless that was done. */
int objects_ready(struct objects *o, struct err *err);

/* ready, and whether the store lets us in. ERR_USAGE: it does not; ERR_IO: it cannot be reached. */
int objects_check(struct objects *o, struct err *err);

void objects_key(const struct objects *o, const char *name, char ret[OBJECT_KEY_MAX + 1]);

/* What the client said, as whoever waits for a file is told it: ERR_BUSY where it may be better later. */
int objects_failed(const char *doing, int rc, struct err *err);

/* False: the memory of all transfers is in use. */
bool objects_hold(struct objects *o, size_t bytes);
void objects_give(struct objects *o, size_t bytes);

int objects_find(struct objects *o, const char *path, struct artifact_file *ret, struct err *err);
int objects_entries(struct objects *o, const char *path, struct entries *list, struct err *err);

/* --- uploads: see artifact_begin -------------------------------------------------------------------------- */

struct object_sending;

int object_sending_begin(struct object_sending **ret, struct objects *o, const struct artifact_room *room,
			 struct err *err);
int object_sending_write(struct object_sending *u, const void *bytes, size_t n, struct err *err);
int object_sending_commit(struct object_sending *u, struct artifact_file *ret, struct err *err);
void object_sending_end(struct object_sending *u);

#endif
