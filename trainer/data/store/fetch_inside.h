/* fetch_inside.h: what the parts of fetch share: objects, blocks and slots. Everything but a block under way and a
 * slot's transfer is read and written under the lock.
 *
 * A block waits in the queue, is under way in a slot, is held, has failed, or is left to the cache. */
#ifndef DPT_DATA_FETCH_INSIDE_H
#define DPT_DATA_FETCH_INSIDE_H

#include <pthread.h>
#include <sys/queue.h>

#include "tracker/object/object.h"
#include "trainer/data/store/cache.h"
#include "trainer/data/store/fetch.h"
#include "trainer/data/store/transfer.h"

#define FETCH_BUCKETS 4096
#define FETCH_SLOTS 64
#define FETCH_SPARES 128
#define FETCH_STALL_MOST_S 60.0

enum block_state { QUEUED, GOING, HELD, FAILED, CACHED };

struct fetched_block {
	TAILQ_ENTRY(fetched_block)
	link;			    /* in the queue, among those that are held for nobody, or to be kept in the cache */
	struct fetched_block *next; /* in its bucket */
	int object;
	uint64_t begin;
	size_t n, unread; /* bytes; no more than once each is read of a block in a pass */
	enum block_state state;
	int uses;    /* announced reads to come */
	int readers; /* that wait for it or copy */
	int tries, wrong;
	bool urgent, probe;
	bool claimed;	/* in the cache: other processes leave it to this one */
	bool direct;	/* past the cache */
	double others;	/* since when another process fetches it; 0: none does */
	double not_before, asked;
	char *bytes;
	struct err err;
};

TAILQ_HEAD(fetched_blocks, fetched_block);

struct fetch_object {
	char *url, *shown;
	struct object_client *client; /* of S3; NULL: http */
	const char *key;	      /* … within its bucket */
	char etag[TRANSFER_ETAG_BYTES];
	char modified[64];
	uint64_t bytes; /* 0: not known, or empty */
	bool known;
	uint32_t *sum;	 /* CRC-32C of each of its n_sums blocks; NULL: not known */
	size_t n_sums;
	uint8_t *cached; /* a bit a block: it was seen in the cache */
	struct err err;
};

struct fetch_slot {
	struct transfer transfer;
	struct curl_slist *headers;
	struct object_signed sign; /* of S3; its headers are those above */
	struct fetched_block *block; /* NULL: free */
};

/* Buckets of S3, each with a client. */
struct fetch_bucket {
	char name[OBJECT_BUCKET_BYTES];
	struct object_client *client;
};

struct fetch {
	struct fetch_opts o;
	struct curlso so;
	void *multi;
	pthread_t thread, keeper;
	bool started, stop, keeps; /* keeps: the keeper was started */
	pthread_mutex_t lock;
	pthread_cond_t arrived, kept;
	struct fetch_object *object;
	int n, cap;
	uint64_t all_bytes; /* of the objects whose sizes are known */
	struct fetched_block *hashed[FETCH_BUCKETS];
	struct fetch_bucket *bucket;
	int n_buckets;
	struct fetched_blocks queue, idle;
	struct fetched_blocks to_keep;
	size_t held_bytes; /* of all blocks with memory, and of spares */
	char *spare[FETCH_SPARES]; /* memory of whole blocks, to be used again: new pages cost as much as their bytes */
	int n_spares;
	bool starved; /* a block waits for memory */
	size_t due_bytes;  /* of those that were announced and not read, and of those in the queue */
	struct fetch_slot slot[FETCH_SLOTS];
	int going, going_most;
	size_t going_bytes;
	uint64_t going_got; /* what had arrived of all that is under way */
	double progress; /* when bytes last arrived */
	uint64_t draws;
	struct fetch_counts counts;
};

#endif
