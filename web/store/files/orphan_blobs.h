/* SPDX-License-Identifier: Apache-2.0 */
/* orphan_blobs.h: objects that are not files of a path (orphan blobs until named). Their creator names one in a row of
 * its own, in a change that takes it off the list of unnamed objects (DB_object_named). Before that gc may remove it.
 */
#ifndef DPT_STORE_ORPHAN_BLOBS_H
#define DPT_STORE_ORPHAN_BLOBS_H

#include "web/store/files/artifacts.h"

struct orphan_blobs;

struct orphan_blobs_object {
	char name[33];
	uint64_t bytes;
	char sha256[65];
};

/* Writing needs a thread that may connect and block. ERR_BUSY: the object store is not available. */
int orphan_blobs_begin(struct orphan_blobs **ret, struct artifacts *a, struct err *err);
int orphan_blobs_add(struct orphan_blobs *l, const void *bytes, size_t n, struct err *err);
int orphan_blobs_end(struct orphan_blobs *l, struct orphan_blobs_object *ret,
		     struct err *err);						   /* reads it back and compares */
void orphan_blobs_free(struct orphan_blobs *l);					   /* NULL is fine */

/* Any thread: another thread sends the request. Waits at most some seconds; fails at once if the store just failed.
 * ERR_BUSY; ERR_DAMAGED: the object is missing. */
struct orphan_blobs_range {
	const char *object;
	uint64_t from;
	size_t n;
};
int orphan_blobs_read(struct artifacts *a, const struct orphan_blobs_range *r, void *to, struct err *err);

/* Its key in the object store; the name itself if none is configured. */
void orphan_blobs_key(struct artifacts *a, const char *object, char *ret, size_t room);

void orphan_blobs_stop(struct artifacts *a); /* current and later waits end soon */

#endif
