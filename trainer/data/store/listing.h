/* listing.h: lists the objects in a folder of a remote store. Of the processes on a machine that began before the
 * listing, one requests it from the server; the others wait for its copy in the user's cache. Private to the store. */
#ifndef DPT_DATA_LISTING_H
#define DPT_DATA_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/buf.h"
#include "tracker/base/err.h"

struct listing_opts {
	const char *bucket, *prefix;
	const char *delimiter; /* groups keys by their prefix up to it and omits these groups; NULL: none */
	double timeout_s;
};

struct listing_entry {
	const char *key; /* without the prefix; never empty */
	uint64_t bytes;
	const char *etag;
};

/* Fills *ret, initialised by the caller; decode it with listing_next. ERR_NOENT: no such bucket. */
int listing_take(struct buf *ret, const struct listing_opts *o, struct err *err);

/* Decodes the next entry. Set *at to 0 first. False: the end. */
bool listing_next(const struct buf *listing, size_t *at, struct listing_entry *ret);

#endif
