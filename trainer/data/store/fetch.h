/* SPDX-License-Identifier: Apache-2.0 */
/* fetch.h: fetches ranges of remote objects ahead of their readers, with one thread for all readers. Reads are
 * announced in order; a reader waits for what has not arrived. Failed requests are repeated until nothing has
 * arrived for timeout_s. An object that changes while it is read is an error. Thread-safe. */
#ifndef DPT_DATA_FETCH_H
#define DPT_DATA_FETCH_H

#include "tracker/base/err.h"
#include "tracker/base/thread.h"

#define FETCH_BLOCK ((uint64_t)8 << 20)

struct fetch;
struct cache;
struct peers;

struct fetch_opts {
	double timeout_s;    /* longest time without progress; > 0 */
	int requests;	     /* most in flight; 0: 16 whole blocks, or more smaller ranges */
	struct cache *cache; /* whole blocks are written to and read from it; borrowed; NULL: none */
	struct peers *peers; /* with a cache: nodes that share theirs; borrowed; NULL: none */
	int parts;	     /* processes that read one part of the objects each; 0: one */
	size_t room_bytes;   /* memory limit, except for what a reader waits for; 0: 1 GiB */
};

/* ERR_UNSUPPORTED without libcurl. */
int fetch_new(struct fetch **ret, const struct fetch_opts *o, struct err *err);
void fetch_free(struct fetch *f); /* stops the thread immediately; NULL is fine */

bool fetch_is_remote(const char *address); /* http:// https:// s3:// gs:// */

/* Adds an object and returns its number, from 0; negative: error. Not during reads. */
int fetch_add(struct fetch *f, const char *url, struct err *err);

uint64_t fetch_room(const struct fetch *f);	      /* memory limit in bytes */
void fetch_set_room(struct fetch *f, uint64_t bytes); /* not during reads */

/* Sets an object's size and version from a listing, so that it is not requested. version: the ETag, on Google Cloud
 * Storage with "#" and the generation. */
void fetch_set_known(struct fetch *f, int object, uint64_t bytes, const char *version);

/* Sets the n CRC-32Cs of an object's FETCH_BLOCK pieces, copied. A block with another checksum is fetched again. */
void fetch_set_sums(struct fetch *f, int object, const uint32_t *sum, size_t n);

/* Requests the sizes of all other objects, in parallel. ERR_USAGE names the unavailable ones. */
int fetch_measure(struct fetch *f, struct err *err);

/* Size of the object, once it is measured or set. */
uint64_t fetch_bytes(const struct fetch *f, int object);
const char *fetch_etag(const struct fetch *f, int object);	 /* "": the server sends none */
const char *fetch_generation(const struct fetch *f, int object); /* on Google Cloud Storage; else "" */
const char *fetch_shown(const struct fetch *f, int object);	 /* its address without secrets */

struct fetch_range {
	int object;
	uint64_t at;
	size_t n; /* >= 1; within the object */
	/* Fetch only these bytes. Otherwise, and always with a cache, whole blocks of FETCH_BLOCK are fetched and
	 * kept for their neighbours. */
	bool alone;
	const struct stop *stop; /* once it is set, a wait ends with ERR_CANCELED; NULL: never */
};

/* Announces a read. False: enough is in flight or held; announce it again later. */
bool fetch_want(struct fetch *f, const struct fetch_range *r);

/* Copies the range to `to`. ERR_IO names the address and the cause. */
int fetch_read(struct fetch *f, const struct fetch_range *r, void *to, struct err *err);

/* Bytes of the objects that are in the cache at present. */
uint64_t fetch_cached(const struct fetch *f);

struct fetch_counts {
	uint64_t bytes, requests, retries; /* of the store */
	uint64_t cache_bytes;		   /* read from the cache */
	uint64_t refetched_bytes;	   /* the part of bytes that the cache had before (cache_had) */
	uint64_t peer_bytes;		   /* received from the caches of other nodes */
	uint64_t peer_failures;		   /* blocks that the store sent because the owner did not */
};

struct fetch_counts fetch_counts(struct fetch *f); /* since fetch_new */

#endif
