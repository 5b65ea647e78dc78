/* orphan_blobs.h: objects that are no file of a path: who makes one names it in a row of his own, by a change that takes its
 * name off the list of those that nobody names (DB_object_named). Until then it is a remnant for gc. */
#ifndef DPT_STORE_ORPHAN_BLOBS_H
#define DPT_STORE_ORPHAN_BLOBS_H

#include "web/store/files/artifacts.h"

struct orphan_blobs;

struct orphan_blobs_object {
	char name[33];
	uint64_t bytes;
	char sha256[65];
};

/* Written on a thread that may connect and wait. ERR_BUSY: the object store takes nothing now. */
int orphan_blobs_begin(struct orphan_blobs **ret, struct artifacts *a, struct err *err);
int orphan_blobs_add(struct orphan_blobs *l, const void *bytes, size_t n, struct err *err);
int orphan_blobs_end(struct orphan_blobs *l, struct orphan_blobs_object *ret, struct err *err); /* read back, and the same */
void orphan_blobs_free(struct orphan_blobs *l);					   /* NULL is fine */

/* Any thread: the store is asked by another one. Waits for some seconds at most; when the store was away a moment ago
 * it is not asked. ERR_BUSY; ERR_DAMAGED: it has no such object. */
int orphan_blobs_read(struct artifacts *a, const char *object, uint64_t from, size_t n, void *to, struct err *err);

/* Its key in the object store; the name where none was named. */
void orphan_blobs_key(struct artifacts *a, const char *object, char *ret, size_t room);

void orphan_blobs_stop(struct artifacts *a); /* what waits for the object store ends soon, also what begins to */

#endif
