/* loader.h: delivers the micro-batches of one rank in order, prefetched by worker threads straight into batch slots
 * that are allocated once: decoded, augmented, normalised. What is delivered depends on the sampler, seed and rank
 * alone, never on the number of workers or slots. The place of a training sample that cannot be read (ERR_CORRUPT) is
 * taken by the next readable one of the epoch's order; in evaluation it counts for nothing (target -1).
 *
 * While loader_next has to wait it works on its batch too.
 *
 * One thread calls next, release and close. Workers block every signal. */
#ifndef DPT_DATA_LOADER_H
#define DPT_DATA_LOADER_H

#include <stddef.h>
#include <stdint.h>

#include "trainer/data/dataset.h"
#include "trainer/data/loader/sampler.h"

struct loader;

struct loader_opts {
	const struct dataset *dataset; /* borrowed until close */
	const struct dataset_norm *norm; /* of u8 pixels; NULL: the set's own. Read by loader_open alone */
	enum split split;
	struct sampler sampler;
	int rank;
	enum dtype dtype;     /* of the delivered images: DTYPE_F32 or DTYPE_F64; nothing to token sets */
	int workers;          /* threads; 0: loader_next does the work itself */
	int helpers; /* of the threads: fill a batch that is waited for, though they do not work ahead */
	bool fewer;           /* makes do with as many threads as the system gives */
	/* batches in flight, those that the caller holds included; 0: enough for all workers, at least 4 */
	int slots;
	unsigned augment;     /* bits of enum dataset_augment */
	int64_t first_epoch, first_step; /* where to begin, from 0; O(1) but for the epoch's order */
	int64_t epochs;       /* ends after so many epochs, the first one (even from its middle) included; 0: never */
	/* Nothing is read ahead of this step (counted over all epochs) or of those behind it; who asks for them gets
	 * them. 0: without end */
	int64_t steps_end;
	bool resting;	      /* stands at its end, with nothing read, until loader_rewind; of those that have one */
	double slow_s;        /* tests of data_wait: every batch takes at least so long to fill */
	/* Optional: told after each piece of work of a thread, numbered from 0, when it was done (clock_mono_s). Called
	 * by several threads, one at a time; must not wait. */
	void (*worked)(void *user, int thread, double from_s, double to_s);
	void *worked_user;
	/* Optional: whether the caller is to end; asked by its thread while loader_next waits. Once it is, nothing is
	 * waited for or read any more: batches that are not full are delivered blank. */
	bool (*ends)(void *user);
	void *ends_user;
	/* Optional: samples' files are read and not decoded, inputs hold nothing; the bytes are added here. Of sets
	 * with ops->file. */
	_Atomic uint64_t *undecoded;
	/* Optional: memory for the slots, loader_bytes() long, aligned to 64 (pinned, of a communicator, …); borrowed
	 * until close. NULL: the loader allocates. */
	void *memory;
};

struct loader_batch {
	int64_t epoch, step;        /* from 0; step within the epoch */
	int64_t micro, n_micro;     /* which micro-batch of the step */
	int64_t count;              /* samples here; may be 0 */
	int64_t global_count;       /* samples of the whole step, over all ranks and micro-batches */
	int64_t global_weight;      /* what the step's mean is taken over: those samples, or their targets */
	const void *inputs;         /* images: count * height * width * channels of dtype, NHWC; tokens: i32, count *
				     * seq_len; 64-byte aligned */
	const int32_t *targets;     /* count labels; or count * seq_len tokens, -1 where there is nothing to learn */
	double wait_s;              /* how long loader_next kept the caller waiting */
	int ready;                  /* batches that were full when it was asked for, this one included */
	bool blank;                 /* zeros in the place of its samples */
	int slot;                   /* for loader_release */
};

int loader_open(struct loader **ret, const struct loader_opts *o, struct err *err);

/* The next micro-batch. 1: *ret is filled, the memory is the caller's until loader_release. 0: the end. Negative: a
 * sample could not be read (ERR_USAGE, named), or the caller holds every slot already (ERR_BUSY). */
int loader_next(struct loader *l, struct loader_batch *ret, struct err *err);
void loader_release(struct loader *l, const struct loader_batch *b); /* in any order */

/* At the end, with every batch released: begins again as it was opened. Allocates nothing. */
void loader_rewind(struct loader *l);

/* From now on n workers, from none to all (as it begins), work ahead; the others only while the caller waits in
 * loader_next, on the batch that it waits for. What is delivered stays the same. */
void loader_set_active(struct loader *l, int n);

/* Seconds that samples took since the last call, of all threads together, and of these those on a core. */
void loader_spent(struct loader *l, double *ret_s, double *ret_cpu_s);

/* Joins the workers at once, also when they wait. NULL is fine. */
void loader_close(struct loader *l);

/* Bytes of all slots; what opts.memory must hold. Checked for overflow: 0 when it cannot be. */
size_t loader_bytes(const struct loader_opts *o);

#endif
