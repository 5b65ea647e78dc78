/* SPDX-License-Identifier: Apache-2.0 */
/* image_set.h: the common part of all sets of picture files, local or remote: the crop box, unreadable pictures
 * and notices. Must be the first member of such a format's struct. */
#ifndef DPT_DATA_IMAGE_SET_H
#define DPT_DATA_IMAGE_SET_H

#include "trainer/data/dataset.h"
#include "trainer/data/pictures/picture.h"

#define IMAGE_SET_NOTICES 16

struct image_set {
	struct dataset base;
	int resize; /* shorter side before the centre crop, for evaluation */
	bool strict, squeeze, inspected; /* inspected: the limit is a notice */
	double max_unreadable;		      /* share of the set; 10 samples are always tolerated */
	_Atomic uint8_t *broken[SPLIT_COUNT]; /* [sample]: counted as unreadable */
	_Atomic int64_t n_broken;
	pthread_mutex_t lock;	    /* protects the notices */
	char notice[IMAGE_SET_NOTICES][512];
	int n_notices, n_unsaid;
};

/* Initialises a zeroed set and its notices; copies path to base.path. */
void image_set_init(struct image_set *s, const char *path);
void image_set_done(struct image_set *s);

/* Sets sizes, classes and normalisation from the options; base.n_samples must be set. classes: number found; what:
 * their name in messages ("class folders"). Normalises with ImageNet's statistics, as is usual, so that weights can
 * be exchanged. */
int image_set_describe(struct image_set *s, const struct dataset_opts *o, int classes, const char *what,
		       struct err *err);

/* Queues a notice for image_set_notice; only counts it if the queue is full. Thread-safe. */
void image_set_note(struct image_set *s, const char *text);
bool image_set_notice(struct dataset *base, char *ret, size_t bytes); /* as dataset_ops.notice */
int64_t image_set_broken(const struct dataset *base);		      /* as dataset_ops.broken */

/* Renders the picture loaded in p, cropped and mirrored as r states. */
int image_set_render(const struct image_set *s, const struct dataset_read *r, struct picture *p,
		     struct picture_size size, struct err *err);

/* Handles a sample that failed with `why`. An unreadable one is noted and counted once, and the result is
 * ERR_CORRUPT; with --strict, or above --max-unreadable, the result is fatal. */
int image_set_failed(struct image_set *s, const struct dataset_read *r, const struct err *why, struct err *err);

/* Counts n samples that are unusable before any was read; the first line of why is about one of them. ERR_LIMIT above
 * --max-unreadable. */
int image_set_lost(struct image_set *s, int64_t n, const char *why, struct err *err);

int image_set_check_pointer(const char *path, struct err *err); /* ERR_USAGE: the file is a Git LFS pointer */

#endif
