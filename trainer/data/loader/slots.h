/* SPDX-License-Identifier: Apache-2.0 */
/* slots.h: the batch slots of a loader: their size and number, which batch each one has, and the work of filling
 * them. Private to the loader.
 *
 * One slot at a time, `current`, is handed out in chunks of samples. Threads claim chunks under the lock and fill them
 * without it. `queue` has the slots in batch order. A slot is free, queued, or held by the caller. */
#ifndef DPT_DATA_SLOTS_H
#define DPT_DATA_SLOTS_H

#include <pthread.h>

#include "trainer/data/loader/announce.h"
#include "trainer/data/loader/fill.h"
#include "trainer/data/loader/loader.h"

#define SLOTS_ALIGN_BYTES 64

/* A function of the options, so that a memory plan can ask before a loader exists. */
struct slots_size {
	int n;
	int64_t capacity;    /* samples per slot: those of the largest micro-batch, and with mixup the one before */
	int labels;	     /* per sample: 2 with mixup; of token sets as many as fill_targets */
	int64_t chunk;	     /* samples that a thread claims at a time */
	size_t sample_bytes; /* of one delivered input */
	size_t input_bytes;  /* of the inputs of a slot; the targets follow */
	size_t bytes;	     /* bytes of a slot */
};

struct fill slots_fill(const struct loader_opts *o); /* leaves its table empty */

/* Fails (negative) when the sizes overflow. */
int slots_measure(struct slots_size *ret, const struct loader_opts *o);

struct loader_slot {
	struct loader_batch batch;
	char *inputs;
	int32_t *targets;
	int64_t *index;	       /* [position in the batch]: sample */
	int64_t first;	       /* position of the first sample in the epoch */
	int64_t before;	       /* mixup: that of the sample which the first one is mixed with; it is filled last */
	int64_t places;	       /* samples to fill: those of the batch, and the one before */
	int64_t claimed, done; /* samples claimed by threads, and samples filled */
	struct mixup_draw mixup;
	int64_t failed_at;     /* index of the first unreadable sample; -1: none */
	struct err err;	       /* … and its error */
	double ready_at;       /* earliest time of delivery (opts.slow_s) */
	bool held;
};

struct slots {
	const struct loader_opts *o; /* borrowed, as is stop */
	const struct stop *stop;
	struct slots_size size;
	struct fill fill;
	struct loader_slot *slot;
	void *memory; /* memory of all slots, if allocated here */
	int *queue, *free_slots;
	int first, n, n_free; /* first of the n queued slots; free ones */
	int current;	      /* slot with unclaimed samples; -1: none */
	struct load_position next; /* batch to assign */
	struct order order;
	struct announcer ahead;
	double spent_s, spent_cpu_s; /* filling samples, since the last loader_spent */
	pthread_mutex_t lock;	     /* protects everything that changes */
	pthread_cond_t work, ready;  /* a chunk may be claimed; a slot is full */
};

/* Allocates the slots. ERR_NOMEM. slots_done frees whatever a failure leaves. o and stop are borrowed. */
int slots_init(struct slots *s, const struct loader_opts *o, const struct stop *stop, struct err *err);
void slots_done(struct slots *s);

/* ---- under the lock ---- */

/* Moves the next batch to the start, as opened. */
void slots_rewind(struct slots *s);

bool slots_at_end(const struct slots *s); /* every batch is assigned */

/* Queues a free slot for the next batch and lists its samples. */
void slots_assign(struct slots *s);

/* The work of one thread. */
struct slot_worker {
	struct fill_hand *hand;
	int number; /* for o->worked; -1: not counted */
};

/* Fills a chunk, of a newly assigned slot if needed; without the lock while it reads. Returns false if there is no
 * work. */
bool slots_work(struct slots *s, const struct slot_worker *w);

/* The first slot of the queue, whose batch is delivered next; NULL: none. */
struct loader_slot *slots_first(const struct slots *s);
bool slots_is_full(const struct loader_slot *slot); /* false for NULL */
bool slots_first_is_open(const struct slots *s);    /* the next batch has unclaimed samples */
int slots_count_full(const struct slots *s);

#endif
