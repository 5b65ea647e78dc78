/* SPDX-License-Identifier: Apache-2.0 */
/* loader.h: delivers the micro-batches of one rank in order. Worker threads prefetch them directly into batch slots
 * that are allocated once: decoded, augmented, normalised. The content depends only on the sampler, seed and rank,
 * never on the number of workers or slots. The next readable sample in the epoch's order replaces an unreadable
 * training sample (ERR_CORRUPT); in evaluation the loss ignores it (target -1).
 *
 * While loader_next waits, its thread works on the batch too.
 *
 * One thread calls next, release and close. Workers block all signals. */
#ifndef DPT_DATA_LOADER_H
#define DPT_DATA_LOADER_H

#include "trainer/data/loader/sampler.h"
#include "trainer/data/pictures/augment.h"

/* ---- mixup.c ----
 * MixUp (Zhang et al. 2018) and CutMix (Yun et al. 2019) of a global batch, as torchvision's transforms.v2 and its
 * reference scripts do: each sample is mixed with the one before it in the batch, the first one with the last. One draw
 * serves a whole step, so that it does not matter how the batch is divided. With both kinds, each step draws one. */

struct mixup_opts {
	double mixup_alpha, cutmix_alpha; /* of the Beta distribution of weights; 0: not used */
};

/* Images [height][width][channels] of f32 or f64. */
struct mixup_size {
	int height, width, channels;
	enum dtype dtype;
};

struct mixup_draw {
	double weight; /* weight of the sample's own label, and with MixUp of its pixels */
	bool cuts;     /* CutMix: the box comes from the sample before */
	int x, y, width, height;
};

static inline bool mixup_is_on(const struct mixup_opts *o)
{
	return o->mixup_alpha > 0 || o->cutmix_alpha > 0;
}

/* The draw of a step; both count from 0. */
struct mixup_draw mixup_draw(const struct mixup_opts *o, uint64_t seed, int64_t epoch, int64_t step,
			     const struct mixup_size *size);

/* CutMix's box of area (1 - weight) about pixel (x, y), cut at the edges; the weight becomes what is left. */
struct mixup_draw mixup_box(double weight, int x, int y, const struct mixup_size *size);

/* Mixes the sample before into `own`. */
void mixup_images(const struct mixup_draw *d, const struct mixup_size *size, void *own, const void *before);

/* A draw of Beta(alpha, alpha), alpha > 0. */
double mixup_beta(struct rng_key key, double alpha);

/* ---- loader.c ---- */

struct loader;

struct loader_opts {
	const struct dataset *dataset;	 /* borrowed until close */
	const struct dataset_norm *norm; /* for u8 pixels; NULL: the set's own. Read only by loader_open */
	enum split split;
	struct sampler sampler;
	int rank;
	enum dtype dtype; /* of delivered images: DTYPE_F32 or DTYPE_F64; ignored for token sets */
	int workers;	  /* threads; 0: loader_next does the work itself */
	int helpers;	  /* number of idle threads that still help with a batch the caller waits for */
	bool fewer;	  /* accepts fewer threads if the system refuses some */
	/* Batches in flight, including those that the caller holds; 0: enough for all workers, at least 4. */
	int slots;
	bool marks;			  /* marks tokens that begin a document (trainer/graph/document_mark.h) */
	unsigned augment;		  /* bits of enum dataset_augment */
	enum augment_policy auto_augment; /* u8 images of 1 or 3 channels; after crop and flip */
	double random_erase;		  /* probability; images */
	struct mixup_opts mixup;	  /* images: mixes each with the sample before it; targets are then pairs */
	int64_t first_epoch, first_step;  /* start position, from 0; O(1) except for the epoch's order */
	int64_t epochs;			  /* number of epochs, counting the first, even a partial one; 0: endless */
	/* Workers do not read ahead from this step on, counted over all epochs. A caller that asks for these steps
	 * still gets them. 0: no limit. */
	int64_t steps_end;
	bool resting; /* starts at its end and reads nothing until loader_rewind; requires epochs > 0 */
	/* Optional: called after each piece of a thread's work with its times (clock_mono_s). Threads are numbered
	 * from 0. Several threads call it, one at a time; it must not block. */
	void (*worked)(void *user, int thread, double from_s, double to_s);
	void *worked_user;
	/* Optional: returns true if the caller must end; its thread calls this while loader_next waits. After that
	 * the loader neither waits nor reads: incomplete batches are delivered blank. */
	bool (*ends)(void *user);
	void *ends_user;
	/* Optional: reads the samples' files without decoding them, and adds their sizes here; inputs stay empty.
	 * For sets with ops->file. */
	_Atomic uint64_t *raw_bytes;
	/* Optional: memory for the slots, loader_bytes() long, 64-byte aligned (pinned, or of a communicator);
	 * borrowed until close. NULL: the loader allocates. */
	void *memory;
};

struct loader_batch {
	int64_t epoch, step;	/* from 0; step within the epoch */
	int64_t micro, n_micro; /* which micro-batch of the step */
	int64_t count;		/* samples in this micro-batch; may be 0 */
	int64_t global_count;	/* samples of the step, over all ranks and micro-batches */
	int64_t global_weight;	/* divisor of the step's mean: samples, or their targets */
	const void *inputs;	/* images: count * height * width * channels of dtype, NHWC; tokens: i32, count *
				 * seq_len; 64-byte aligned */
	/* count labels; or count * seq_len tokens; -1: ignored by the loss. With mixup: count pairs of labels, the
	 * sample's own and that of the sample before it. */
	const int32_t *targets;
	double label_weight; /* of the first label of a pair; 1 without mixup */
	double wait_s;	     /* time that loader_next waited */
	int ready;	     /* full batches at the call, including this one */
	bool blank;	     /* zeros instead of samples */
	int slot;	     /* for loader_release */
};

/* Allocates the slots and starts the workers. Options are copied. ERR_USAGE: impossible options; ERR_NOMEM; or an
 * error of the system when threads cannot start. */
int loader_open(struct loader **ret, const struct loader_opts *o, struct err *err);

/* Returns the next micro-batch. 1: *ret is filled, and its memory belongs to the caller until loader_release. 0: the
 * end. Negative: an unreadable sample (ERR_USAGE, with its name), or the caller holds all slots (ERR_BUSY). */
int loader_next(struct loader *l, struct loader_batch *ret, struct err *err);
void loader_release(struct loader *l, const struct loader_batch *b); /* in any order */

/* Restarts as opened. Requires the end and that all batches are released. Allocates nothing. */
void loader_rewind(struct loader *l);

/* Sets the number of workers that work ahead, initially all. The others work only on a batch that loader_next waits
 * for. Does not change what is delivered. */
void loader_set_active(struct loader *l, int n);

/* Seconds spent on samples since the last call, summed over threads, and the CPU seconds of these. */
void loader_spent(struct loader *l, double *ret_s, double *ret_cpu_s);

/* Joins the workers immediately, even if they wait. NULL is fine. */
void loader_close(struct loader *l);

/* Bytes of all slots: the size of opts.memory. 0: overflow. */
size_t loader_bytes(const struct loader_opts *o);

#endif
