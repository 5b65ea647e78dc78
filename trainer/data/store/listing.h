/* listing.h: what lies below a folder of a remote store. Of the processes of a machine that began before a
 * listing did, one asks the server; the others wait for what it keeps in the user's cache. Within the room only. */
#ifndef DPT_DATA_LISTING_H
#define DPT_DATA_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/buf.h"
#include "tracker/base/err.h"

struct listing_opts {
	const char *bucket, *prefix;
	const char *delimiter; /* what shares a beginning up to it is left out; NULL: none */
	double timeout_s;
};

struct listing_entry {
	const char *key; /* behind the prefix; never empty */
	uint64_t bytes;
	const char *etag;
};

/* Fills *ret, which the caller has initialised, with what listing_next takes apart. ERR_NOENT: no such bucket. */
int listing_take(struct buf *ret, const struct listing_opts *o, struct err *err);

/* *at begins with 0. False: that was all. */
bool listing_next(const struct buf *listing, size_t *at, struct listing_entry *ret);

#endif
