/* fetch_inside.h: shared by the parts of fetch: objects, blocks and slots. The lock protects everything except a block
 * in transfer and a slot's transfer.
 *
 * A block is queued, in transfer in a slot, held, failed, or left to the cache. */
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
	TAILQ_ENTRY(fetched_block) link; /* in the queue, the idle list, or the list of blocks to write to the cache */
	struct fetched_block *next;	 /* in its bucket */
	int object;
	uint64_t begin;
	size_t n, unread; /* bytes; bytes not yet read in this pass, where each byte counts once */
	enum block_state state;
	int uses;    /* announced reads left */
	int readers; /* waiting or copying */
	int tries, wrong;
	bool urgent, probe;
	bool claimed;  /* in the cache, so that other processes do not fetch it */
	bool direct;   /* bypasses the cache */
	double others; /* time since which another process fetches it; 0: none */
	double not_before, asked;
	char *bytes;
	struct err err;
};

TAILQ_HEAD(fetched_blocks, fetched_block);

struct fetch_object {
	char *url, *shown;
	struct object_client *client; /* S3; NULL: http */
	const char *key;	      /* … key in the bucket */
	char etag[TRANSFER_ETAG_BYTES];
	char modified[64];
	uint64_t bytes; /* 0: unknown, or empty */
	bool known;
	uint32_t *sum; /* CRC-32C of each of n_sums blocks; NULL: unknown */
	size_t n_sums;
	uint8_t *cached; /* a bit per block: seen in the cache */
	struct err err;
};

struct fetch_slot {
	struct transfer transfer;
	struct curl_slist *headers;
	struct object_signed sign;   /* S3; its headers are those above */
	struct fetched_block *block; /* NULL: free */
};

/* An S3 bucket and its client. */
struct fetch_bucket {
	char name[OBJECT_BUCKET_BYTES];
	struct object_client *client;
};

struct fetch {
	struct fetch_opts o;
	struct curlso so;
	void *multi;
	pthread_t thread, keeper;
	bool started, stop, keeps; /* keeps: the cache writer was started */
	pthread_mutex_t lock;
	pthread_cond_t arrived, kept;
	struct fetch_object *object;
	int n, cap;
	uint64_t all_bytes; /* of objects with known sizes */
	struct fetched_block *hashed[FETCH_BUCKETS];
	struct fetch_bucket *bucket;
	int n_buckets;
	struct fetched_blocks queue, idle;
	struct fetched_blocks to_keep;
	size_t held_bytes;	   /* of all blocks with memory, and spares */
	char *spare[FETCH_SPARES]; /* memory of whole blocks for reuse: clearing new pages costs as much as copying */
	int n_spares;
	bool starved; /* a block waits for memory */
	size_t due_bytes; /* announced and unread, and in the queue */
	struct fetch_slot slot[FETCH_SLOTS];
	int going, going_most;
	size_t going_bytes;
	uint64_t going_got; /* bytes received so far by current transfers */
	double progress;    /* time of the last received bytes */
	uint64_t draws;
	struct fetch_counts counts;
};

#endif
