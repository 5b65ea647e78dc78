/* fetch.h: ranges of remote objects, fetched ahead by one thread that many readers share. What will be read is
 * announced in the order of reading; readers wait for what has not arrived. Answers that fail on the way are asked for
 * again until nothing has arrived for timeout_s. An object that changes while it is read is an error. Any thread. */
#ifndef DPT_DATA_FETCH_H
#define DPT_DATA_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"
#include "tracker/base/stop.h"

#define FETCH_BLOCK ((uint64_t)8 << 20)

struct fetch;
struct cache;

struct fetch_opts {
	double timeout_s;  /* without any progress: the end; > 0 */
	int requests;	   /* in flight, at most; 0: 16 of a whole block, more of smaller ranges */
	struct cache *cache; /* whole blocks are kept there and read from there; borrowed; NULL: none */
	int parts; /* that the objects are read in, each by a process; 0: one */
	size_t room_bytes; /* for what is held, at most, but for what somebody waits for; 0: 1 GiB */
};

/* ERR_UNSUPPORTED without libcurl. */
int fetch_new(struct fetch **ret, const struct fetch_opts *o, struct err *err);
void fetch_free(struct fetch *f); /* ends the thread at once; NULL is fine */

bool fetch_is_remote(const char *address); /* http:// https:// s3:// */

/* The number of the object, from 0; negative: out of memory. Not while others read. */
int fetch_add(struct fetch *f, const char *url, struct err *err);

uint64_t fetch_room(const struct fetch *f); /* bytes that it holds at most */
void fetch_set_room(struct fetch *f, uint64_t bytes); /* not while others read */

/* What a listing says of an object: it is not asked for then. */
void fetch_set_known(struct fetch *f, int object, uint64_t bytes, const char *etag);

/* CRC-32C of each FETCH_BLOCK of an object, n of them, copied: blocks that arrive with another are asked for again. */
int fetch_set_sums(struct fetch *f, int object, const uint32_t *sum, size_t n, struct err *err);

/* Asks for the sizes of all other objects that were added, all at once. ERR_USAGE names what cannot be had. */
int fetch_measure(struct fetch *f, struct err *err);

uint64_t fetch_bytes(const struct fetch *f, int object);
const char *fetch_etag(const struct fetch *f, int object);  /* "": the server gives none */
const char *fetch_shown(const struct fetch *f, int object); /* its address without secrets */

struct fetch_range {
	int object;
	uint64_t at;
	size_t n; /* >= 1; within the object */
	/* Only these bytes are asked for; else, and always with a cache, whole blocks of FETCH_BLOCK, which are kept
	 * for their neighbours. */
	bool alone;
	const struct stop *stop; /* a wait ends with ERR_CANCELED once it is asked for; NULL: never */
};

/* Somebody will read this. False: enough is on its way or held; announce it again later. */
bool fetch_want(struct fetch *f, const struct fetch_range *r);

/* Copies the range. ERR_IO with address and cause. */
int fetch_read(struct fetch *f, const struct fetch_range *r, void *to, struct err *err);

/* Bytes of the objects that lie in the cache now. */
uint64_t fetch_cached(const struct fetch *f);

struct fetch_counts {
	uint64_t bytes, requests, retries;
	uint64_t cache_bytes; /* that readers got from the cache */
};

struct fetch_counts fetch_counts(struct fetch *f); /* since the beginning */

#endif
