/* SPDX-License-Identifier: Apache-2.0 */
/* augment.h: RandAugment (Cubuk et al. 2019), TrivialAugment (Mueller and Hutter 2021) and random erasing (Zhong et al.
 * 2017) of one image, as torchvision's transforms.v2 compute them on tensors with bilinear interpolation and black
 * fill; and every draw of augmentation. Independent of files, batches or threads. */
#ifndef DPT_DATA_AUGMENT_H
#define DPT_DATA_AUGMENT_H

#include "trainer/graph/graph.h"
#include "trainer/graph/rng.h"

/* ---- draws ----
 * All draws of a sample use one key, with other counters for each kind; so each depends only on seed, visit and
 * sample. */

/* The key of a sample in one visit: its epoch and repetition. MixUp draws once a step: number is -1 - step. */
struct rng_key augment_key(uint64_t seed, uint64_t visit, int64_t number);

struct augment_move { /* of one image */
	int dx, dy;   /* shift in pixels; uncovered pixels are black */
	bool flip;
};

/* crop: at most 4 pixels in each direction; flip: with probability 1/2. */
struct augment_move augment_draw_move(struct rng_key key, bool crop, bool flip);

/* A part of a picture, in its pixels. */
struct augment_part {
	double x, y, width, height;
};

/* torchvision's RandomResizedCrop: 8 to 100 % of the area, aspect ratio from 3:4 to 4:3, ten attempts, else the
 * centre. */
struct augment_part augment_draw_part(struct rng_key key, int width, int height);

enum augment_policy { AUGMENT_NONE, AUGMENT_RA, AUGMENT_TA_WIDE };

/* In torchvision's order: a random number selects one of them. */
enum augment_op {
	AUGMENT_IDENTITY,
	AUGMENT_SHEAR_X,
	AUGMENT_SHEAR_Y,
	AUGMENT_TRANSLATE_X,
	AUGMENT_TRANSLATE_Y,
	AUGMENT_ROTATE,
	AUGMENT_BRIGHTNESS,
	AUGMENT_COLOR,
	AUGMENT_CONTRAST,
	AUGMENT_SHARPNESS,
	AUGMENT_POSTERIZE,
	AUGMENT_SOLARIZE,
	AUGMENT_AUTO_CONTRAST,
	AUGMENT_EQUALIZE,
	AUGMENT_OPS
};

#define AUGMENT_STEPS_MAX 2 /* of RandAugment; TrivialAugment has one */
#define AUGMENT_BINS 31	    /* of magnitudes */
#define AUGMENT_RA_BIN 9    /* RandAugment's magnitude */

struct augment_step {
	enum augment_op op;
	double magnitude; /* with its sign; pixels, degrees, bits or a share, as torchvision has it */
};

/* 8-bit pixels [height][width][channels], 1 or 3 channels. scratch: as many bytes. */
struct augment_image {
	uint8_t *pixels, *scratch;
	int height, width, channels;
};

/* Magnitude of a bin in [0, AUGMENT_BINS), without a sign; 0 for ops that have none. */
double augment_magnitude(enum augment_policy policy, enum augment_op op, int bin, const struct augment_image *im);

/* Draws the steps of a policy; returns their number. */
int augment_draw_steps(enum augment_policy policy, struct rng_key key, const struct augment_image *im,
		       struct augment_step ret[AUGMENT_STEPS_MAX]);

/* Changes im->pixels. */
void augment_apply(const struct augment_step *step, const struct augment_image *im);

/* The part of an image that is erased. */
struct augment_box {
	int x, y, width, height;
};

/* Draws with this probability a box of 2 to 33 % of the area, aspect ratio from 0.3 to 3.3; false: none. */
bool augment_draw_box(double probability, struct rng_key key, const struct augment_image *im, struct augment_box *ret);

/* Sets the box of a normalised image (f32 or f64) to 0. */
void augment_erase(const struct augment_box *box, const struct augment_image *im, enum dtype dtype, void *values);

#endif
