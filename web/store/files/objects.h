/* SPDX-License-Identifier: Apache-2.0 */
/* objects.h: artifacts as objects of an S3 store. A row maps a path to an object with a random name; paths are never
 * keys. First a row records that the object begins, then its bytes are sent, then a row makes it the file of its
 * path. So a file is complete or absent, and gc finds what a killed process left by its row.
 * Requests run on a thread pool, because threads that answer requests must not connect and never wait for the store.
 * Private to web/store/files. */
#ifndef DPT_STORE_OBJECTS_H
#define DPT_STORE_OBJECTS_H

#include <pthread.h>

#include "tracker/base/sha256.h"
#include "tracker/object/object.h"
#include "web/store/base/background_job.h"
#include "web/store/files/artifacts.h"

#define OBJECT_NAME_BYTES 33
#define OBJECTS_PART ((size_t)8 << 20)	 /* bytes per request */
#define OBJECTS_HELD ((size_t)256 << 20) /* memory of all transfers */

struct entries;
struct files_sum;

struct objects {
	struct store *store;
	char address[OBJECT_BUCKET_BYTES + OBJECT_KEY_MAX];
	char bucket[OBJECT_BUCKET_BYTES];
	const char *prefix;	      /* in address */
	pthread_mutex_t lock;	      /* guards the next two while they are made, and the two after them */
	struct object_client *client; /* NULL: not used yet */
	struct thread_pool *crew;
	double away_until_s;	       /* after a failure requests fail at once until then */
	char lost[OBJECT_KEY_MAX + 1]; /* the missing object last reported */
	_Atomic bool stop;
	atomic_size_t held;
};

/* Chooses by opts and by what rows of the store say; updates the rows if allowed. *ret NULL: files are in a folder.
 * ERR_USAGE: they are in another object store. */
int objects_place(struct objects **ret, struct store *s, const struct artifacts_opts *opts, struct err *err);
void objects_free(struct objects *o); /* cancels transfers and waits for them; NULL is fine */

/* Reads AWS's variables and starts the threads, once. */
int objects_ready(struct objects *o, struct err *err);

/* As ready, and checks access. ERR_USAGE: access denied; ERR_IO: not reachable. */
int objects_check(struct objects *o, struct err *err);

void objects_key(const struct objects *o, const char *name, char ret[OBJECT_KEY_MAX + 1]);

/* Converts an error of the client for those who wait for a file: ERR_BUSY if a retry may succeed. */
int objects_failed(const char *doing, int rc, struct err *err);

/* False: the memory of all transfers is in use. */
bool objects_hold(struct objects *o, size_t bytes);
void objects_give(struct objects *o, size_t bytes);

int objects_find(struct objects *o, const char *path, struct artifact_file *ret, struct err *err);
int objects_sum(struct objects *o, const char *path, struct files_sum *io, struct err *err);
int objects_entries(struct objects *o, const char *path, struct entries *list, struct err *err);

/* --- uploads: see artifact_begin -------------------------------------------------------------------------- */

struct object_sending;

int object_sending_begin(struct object_sending **ret, struct objects *o, const struct artifact_room *room,
			 struct err *err);
int object_sending_write(struct object_sending *u, const void *bytes, size_t n, struct err *err);
int object_sending_commit(struct object_sending *u, struct artifact_file *ret, struct err *err);
void object_sending_end(struct object_sending *u);

#endif
