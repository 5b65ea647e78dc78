/* SPDX-License-Identifier: Apache-2.0 */
/* fetch_inside.h: shared by the parts of fetch: objects and readers (fetch.c), blocks and their cache (fetch_block.c),
 * requests (fetch_thread.c). The lock protects everything except a block in transfer and a slot's transfer.
 *
 * A block is queued, in transfer in a slot, held, failed, or left to the cache. */
#ifndef DPT_DATA_FETCH_INSIDE_H
#define DPT_DATA_FETCH_INSIDE_H

#include <sys/queue.h>

#include "tracker/object/object.h"
#include "trainer/data/store/cache.h"
#include "trainer/data/store/fetch.h"
#include "trainer/data/store/peers.h"
#include "trainer/data/store/transfer.h"

#define FETCH_BUCKETS 4096
#define FETCH_SLOTS 64
#define FETCH_SPARES 128
#define FETCH_STALL_MOST_S 60.0

enum block_state { QUEUED, GOING, HELD, FAILED, CACHED };

struct fetched_block {
	TAILQ_ENTRY(fetched_block) link; /* in the queue, the idle list, or the list of blocks to write to the cache */
	struct fetched_block *next;	 /* in its bucket */
	int object;
	uint64_t begin;
	size_t n, unread; /* bytes; bytes not yet read in this pass, where each byte counts once */
	enum block_state state;
	int uses;		   /* announced reads left */
	int readers;		   /* waiting or copying */
	int tries, wrong, renewed; /* renewed: requests repeated with other credentials */
	bool urgent, probe;
	bool claimed;	   /* in the cache, so that other processes do not fetch it */
	bool direct;	   /* bypasses the cache */
	int peer;	   /* node that is sending it; -1: the store */
	int peer_asks;	   /* answers of its owner that it is on its way */
	double peer_since; /* time of the first of them */
	bool store_only;   /* its owner failed */
	double others;	   /* time since which another process fetches it; 0: none */
	double not_before, asked;
	char *bytes;
	struct err err;
};

TAILQ_HEAD(fetched_blocks, fetched_block);

struct fetch_object {
	char *url, *shown;
	struct object_client *client; /* of the bucket; NULL: http */
	const char *key;	      /* … key in the bucket */
	char etag[CURL_ETAG_BYTES];
	char modified[64];
	char generation[OBJECT_GENERATION_BYTES]; /* Google's number of the version; "": none */
	uint64_t bytes;				  /* 0: unknown, or empty */
	bool known;
	uint32_t *sum; /* CRC-32C of each of n_sums blocks; NULL: unknown */
	size_t n_sums;
	uint8_t *cached; /* a bit per block: seen in the cache */
	struct err err;
};

struct fetch_slot {
	struct transfer transfer;
	struct curl_slist *headers;
	struct object_signed sign;   /* of a bucket; its headers are those above */
	struct fetched_block *block; /* NULL: free */
	struct peers_ask ask;	     /* the request, if it is to a node */
};

/* A bucket and its client. */
struct fetch_bucket {
	const char *scheme;
	char name[OBJECT_BUCKET_BYTES];
	struct object_client *client;
};

struct fetch_buckets {
	struct fetch_bucket *at;
	int n, cap;
};

/* The blocks and their memory. */
struct block_pool {
	struct fetched_block *hashed[FETCH_BUCKETS];
	struct fetched_blocks queue, idle;
	size_t held_bytes;	   /* of all blocks with memory, and spares */
	char *spare[FETCH_SPARES]; /* memory of whole blocks for reuse: clearing new pages costs as much as copying */
	int n_spares;
	bool starved;	  /* a block waits for memory */
	size_t due_bytes; /* announced and unread, and in the queue */
};

/* The requests and their thread. */
struct fetch_requests {
	void *multi;
	pthread_t thread;
	bool started;
	struct fetch_slot slot[FETCH_SLOTS];
	int n, most; /* in flight */
	size_t bytes;
	uint64_t got;	 /* bytes received so far by current transfers */
	double progress; /* time of the last received bytes */
	uint64_t draws;
};

/* The thread that writes received blocks to the cache. */
struct fetch_keeper {
	pthread_t thread;
	bool started;
	pthread_cond_t wake;
	struct fetched_blocks queue;
};

struct fetch {
	struct fetch_opts o;
	struct curlso so;
	pthread_mutex_t lock;
	pthread_cond_t arrived;
	bool stop, measured;
	struct fetch_object *object;
	int n, cap;
	uint64_t all_bytes; /* of objects with known sizes */
	struct fetch_buckets buckets;
	struct block_pool pool;
	struct fetch_requests requests;
	struct fetch_keeper keeper;
	struct fetch_counts counts;
};

/* ---- blocks: lookup, queueing, memory and eviction; under the lock ---- */

/* Finds a block that is neither a probe nor left to the cache; NULL: none. */
struct fetched_block *block_find(struct fetch *f, int object, uint64_t begin, size_t n);

/* Appends a new block to the queue. */
struct fetched_block *block_queue(struct fetch *f, int object, uint64_t begin, size_t n);

/* Allocates a block's memory and evicts idle blocks for it, the oldest first. False: no memory now; a block that a
 * reader waits for always gets some. */
bool block_take_memory(struct fetch *f, struct fetched_block *b);

/* Returns true if a block that got no memory may get some now. */
bool block_may_have_room(const struct fetch *f);

void block_free_all(struct fetch *f); /* for fetch_free */

void block_count_read(struct fetched_block *b, size_t n); /* a reader has read n bytes of the block */

/* Call after a use or reader ends. May free b. */
void block_rest(struct fetch *f, struct fetched_block *b);

/* ---- a fetch and its cache: which blocks are cached, which another process fetches, and the thread that writes
 * received blocks ---- */

/* Returns true if the object's blocks are cached. An object without a version cannot be: a cached block might be
 * outdated. */
bool kept_can(const struct fetch *f, int object);

/* Computes the name of a block in the cache. */
void kept_name(const struct fetch *f, int object, uint64_t begin, struct cache_block *ret);

/* Returns true if the block is probably in the cache, without reading it. */
bool kept_has(struct fetch *f, int object, uint64_t begin);

/* Records whether the block is in the cache. */
void kept_set_seen(struct fetch *f, int object, uint64_t begin, bool seen);

/* Returns true if a queued block need not be requested, or not yet: it is in the cache (b may be freed), or another
 * process fetches it. */
bool kept_elsewhere(struct fetch *f, struct fetched_block *b);

/* Releases the claim, so that other processes may fetch the block. */
void kept_release(struct fetch *f, struct fetched_block *b);

/* Counts a block from the store that the cache had before. */
void kept_count_again(struct fetch *f, const struct fetched_block *b);

/* Queues a held block for writing. The writer counts as a reader until it is done. */
void kept_write(struct fetch *f, struct fetched_block *b);

/* Finishes the pending writes, without the lock. Call after f->stop is set. */
void kept_end(struct fetch *f);

/* ---- blocks of other nodes' caches, and this node's for them; under the lock ---- */

/* Returns the node to request a block from, and describes the request in s->ask; -1: the store. */
int fetch_peer_pick(struct fetch *f, struct fetch_slot *s, const struct fetched_block *b);

/* Makes the request s->ask for a block with b->peer set. False: it must come from the store. */
bool fetch_peer_begin(struct fetch *f, struct fetch_slot *s, struct fetched_block *b);

/* Judges the finished transfer from a node. True: the block is complete. Otherwise it must be queued again, for
 * s->block->not_before. */
bool fetch_peer_end(struct fetch *f, struct fetch_slot *s, int code);

/* A peers_source: reads a block for another node. Without the lock. */
int fetch_serve(void *user, const struct peers_ask *ask, void *to);

/* ---- the thread that requests the queued blocks: only it uses libcurl ---- */

/* Starts the thread, or wakes it if it may request more. It starts with the first block, because a process may fork
 * before. Under the lock. */
int fetcher_start(struct fetch *f, struct err *err);

/* Cancels the transfers and joins the thread. */
void fetcher_end(struct fetch *f);

#endif
