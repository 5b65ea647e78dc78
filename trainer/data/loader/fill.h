/* SPDX-License-Identifier: Apache-2.0 */
/* fill.h: produces one sample of a batch: read, augmented, normalised. The result depends only on (seed, epoch,
 * sample). Independent of batches, order or threads. */
#ifndef DPT_DATA_FILL_H
#define DPT_DATA_FILL_H

#include "trainer/data/dataset.h"
#include "trainer/data/pictures/augment.h"
#include "trainer/data/pictures/pixels.h"

struct fill {
	const struct dataset *dataset;
	struct dataset_norm norm;
	enum split split;
	struct dataset sized; /* kind and type of the set, and the size of the split's images */
	enum dtype dtype; /* of delivered images: DTYPE_F32 or DTYPE_F64 */
	unsigned augment; /* bits of enum dataset_augment */
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
	uint8_t *scratch; /* two source images */
	struct dataset_file file; /* encoded; used with raw_bytes */
	const struct stop *stop;  /* as in struct dataset_read; set by the scratch's owner */
};

/* Allocates the scratch of one thread. ERR_NOMEM. */
int fill_hand_init(const struct fill *f, struct fill_hand *ret, struct err *err);
void fill_hand_done(const struct fill *f, struct fill_hand *h); /* a zeroed hand is fine */

struct fill_place {
	int64_t index, epoch; /* sample; epoch from 0 */
	int64_t repeat;	      /* number of the sample's repetition in its epoch, from 0: augmentation differs */
	bool alone; /* as in struct dataset_read */
	void *input;
	int32_t *target;
};

/* ERR_CORRUPT: the sample is unreadable, and another may replace it. */
int fill_sample(const struct fill *f, struct fill_hand *h, const struct fill_place *p, struct err *err);

/* Fills a place that the loss ignores: black, with target -1. */
void fill_nothing(const struct fill *f, const struct fill_place *p);

#endif
