/* SPDX-License-Identifier: Apache-2.0 */
/* slots.h: the batch slots of a loader: their size and number, which batch each one has, and the work of filling
 * them. Private to the loader.
 *
 * One slot at a time, `current`, is handed out in chunks of samples. Threads claim chunks under the lock and fill them
 * without it. `queue` has the slots in batch order. A slot is free, queued, or held by the caller. */
#ifndef DPT_DATA_SLOTS_H
#define DPT_DATA_SLOTS_H

#include "trainer/data/loader/loader.h"
#include "trainer/data/pictures/pixels.h"

/* ---- announce.c ----
 * Announces samples to a set in reading order, before they are read: to a remote set until it has enough in flight, to
 * a local one shortly before they are claimed. Private to the loader, which calls everything but announce_chosen under
 * its lock. */

#define ANNOUNCE_AT_ONCE 16 /* samples of a local set */

/* A micro-batch of the run. */
struct load_position {
	int64_t epoch, step, micro;
};

/* Advances to the next micro-batch, step or epoch. */
void load_position_advance(const struct loader_opts *o, struct load_position *p);
bool load_position_is_end(const struct loader_opts *o, const struct load_position *p);	      /* past the last epoch */
bool load_position_is_past_steps(const struct loader_opts *o, const struct load_position *p); /* past o->steps_end */

struct announcer {
	const struct loader_opts *o; /* borrowed */
	struct order order;
	struct load_position at; /* position of the next sample to announce */
	int64_t place;		 /* … in its micro-batch */
	int64_t n;		 /* local sets: announced minus claimed samples; below 0: claims are ahead */
};

/* Samples of a local set to announce. */
struct announcements {
	struct dataset_read read[ANNOUNCE_AT_ONCE];
	int n;
};

void announcer_init(struct announcer *a, const struct loader_opts *o);
void announcer_done(struct announcer *a); /* a zeroed one is fine */
void announcer_rewind(struct announcer *a, const struct load_position *to);

/* Announces samples of a remote set until the set has enough. next: the next micro-batch to assign. */
void announce_remote(struct announcer *a, const struct load_position *next);

/* Accounts n claimed samples and chooses the samples of a local set to announce. */
void announce_choose(struct announcer *a, const struct load_position *next, int64_t n, struct announcements *ret);

/* Announces the chosen samples. Without the lock, because it may wait for the disk. */
void announce_chosen(const struct loader_opts *o, const struct announcements *chosen);

/* ---- fill.c ----
 * Produces one sample of a batch: read, augmented, normalised. The result depends only on (seed, epoch, sample).
 * Independent of batches, order or threads. */

struct fill {
	const struct dataset *dataset;
	struct dataset_norm norm;
	enum split split;
	struct dataset sized; /* kind and type of the set, and the size of the split's images */
	enum dtype dtype;     /* of delivered images: DTYPE_F32 or DTYPE_F64 */
	bool marks;	      /* as in struct loader_opts */
	unsigned augment;     /* bits of enum dataset_augment */
	enum augment_policy auto_augment;
	double random_erase; /* probability */
	uint64_t seed;
	_Atomic uint64_t *raw_bytes; /* as in struct loader_opts */
	struct pixels_table table;
};

/* For struct fill's member. */
struct dataset fill_sized(const struct dataset *d, enum split split);

void fill_init(struct fill *f); /* makes the table from dataset and norm; the caller sets the rest */

size_t fill_input_bytes(const struct fill *f); /* of one delivered input */
size_t fill_targets(const struct dataset *d);  /* numbers in its target */

/* Worker scratch of one thread. */
struct fill_hand {
	void *dataset_hand;
	uint8_t *scratch;	  /* two source images, or the places of tokens */
	struct dataset_file file; /* encoded; used with raw_bytes */
	const struct stop *stop;  /* as in struct dataset_read; set by the scratch's owner */
};

/* Allocates the scratch of one thread. */
void fill_hand_init(const struct fill *f, struct fill_hand *ret);
void fill_hand_done(const struct fill *f, struct fill_hand *h); /* a zeroed hand is fine */

struct fill_place {
	int64_t index, epoch; /* sample; epoch from 0 */
	int64_t repeat;	      /* number of the sample's repetition in its epoch, from 0: augmentation differs */
	bool alone;	      /* as in struct dataset_read */
	void *input;
	int32_t *target;
};

/* ERR_CORRUPT: the sample is unreadable, and another may replace it. */
int fill_sample(const struct fill *f, struct fill_hand *h, const struct fill_place *p, struct err *err);

/* Fills a place that the loss ignores: black, with target -1. */
void fill_nothing(const struct fill *f, const struct fill_place *p);

/* ---- slots.c ---- */

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
	int64_t failed_at; /* index of the first unreadable sample; -1: none */
	struct err err;	   /* … and its error */
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
	int first, n, n_free;	   /* first of the n queued slots; free ones */
	int current;		   /* slot with unclaimed samples; -1: none */
	struct load_position next; /* batch to assign */
	struct order order;
	struct announcer ahead;
	double spent_s, spent_cpu_s; /* filling samples, since the last loader_spent */
	pthread_mutex_t lock;	     /* protects everything that changes */
	pthread_cond_t work, ready;  /* a chunk may be claimed; a slot is full */
};

/* Allocates the slots. ERR_NOMEM: that of the batches. slots_done frees whatever a failure leaves. o and stop are
 * borrowed. */
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
