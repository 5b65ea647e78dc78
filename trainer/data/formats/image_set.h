/* image_set.h: what sets of picture files have in common, wherever their bytes lie: the box that is looked at, the
 * pictures that cannot be read, and what is said of them. First member of such a format's struct. */
#ifndef DPT_DATA_IMAGE_SET_H
#define DPT_DATA_IMAGE_SET_H

#include <pthread.h>
#include <stdatomic.h>

#include "trainer/data/dataset.h"
#include "trainer/data/pictures/picture.h"
#include "trainer/data/store/decoded_cache.h"

#define IMAGE_SET_NOTICES 16

struct image_set {
	struct dataset base;
	int resize; /* shorter side before the centre is cut out, for evaluation */
	bool strict, squeeze;
	double max_broken;		      /* share of the set, at least 10 of it */
	_Atomic uint8_t *broken[SPLIT_COUNT]; /* [sample]: already counted */
	_Atomic int64_t n_broken;
	struct decoded_cache *kept; /* evaluation pictures as they were delivered; NULL: none are kept */
	char how[80]; /* … and what they depend on besides their files */
	pthread_mutex_t lock; /* of the notices */
	char notice[IMAGE_SET_NOTICES][512];
	int n_notices, n_unsaid;
};

/* Makes a zeroed set ready for notices. base.path becomes a copy of path. */
int image_set_init(struct image_set *s, const char *path, struct err *err);
void image_set_done(struct image_set *s);

/* Sizes, classes and normalisation out of the options; base.n_samples is known by now. `classes` are those found,
 * `what` they are ("class folders"). Normalised with the usual statistics of ImageNet, as the field does, so that
 * weights can be exchanged. */
int image_set_describe(struct image_set *s, const struct dataset_opts *o, int classes, const char *what,
		       struct err *err);

void image_set_note(struct image_set *s, const char *text);
bool image_set_notice(struct dataset *base, char *ret, size_t bytes); /* as dataset_ops.notice */
int64_t image_set_broken(const struct dataset *base);		      /* as dataset_ops.broken */

/* The picture that is loaded in r->hand's decoder, as r asks for it. */
int image_set_render(const struct image_set *s, const struct dataset_read *r, struct picture *p,
		     struct picture_size size, struct err *err);

/* ---- --cache-decoded: evaluation pictures, kept as they were delivered ---- */

/* Opens their place where o asks for it, when the set is described. others_bytes: of objects that will lie there
 * too. */
int image_set_open_kept(struct image_set *s, const struct dataset_opts *o, uint64_t others_bytes, struct err *err);

/* Whether what r asks for is kept once it was delivered. */
bool image_set_keeps(const struct image_set *s, const struct dataset_read *r);

/* Delivers it from there; `from` names the file that it was made of (its member how is set here). False: it is not
 * there. image_set_keep puts it there, when r was delivered. */
bool image_set_take(const struct image_set *s, const struct dataset_read *r, struct decoded_cache_name *from);
bool image_set_holds(const struct image_set *s, struct decoded_cache_name *from); /* whether it is, unread */
void image_set_keep(const struct image_set *s, const struct dataset_read *r, struct decoded_cache_name *from);

/* What becomes of a sample that failed with rc and `why`: a broken one is noted once and counted, and ERR_CORRUPT; with
 * --strict, or above --max-broken, the end. */
int image_set_failed(struct image_set *s, const struct dataset_read *r, const struct err *why, struct err *err);

/* Samples that were found to be lost before any was read. ERR_LIMIT above --max-broken. */
int image_set_lost(struct image_set *s, int64_t n, struct err *err);

#endif
