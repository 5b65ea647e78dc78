/* SPDX-License-Identifier: Apache-2.0 */
/* pixels.h: operations on the pixels of one image: statistics, normalisation, crop and flip. Independent of files,
 * batches or threads. */
#ifndef DPT_DATA_PIXELS_H
#define DPT_DATA_PIXELS_H

#include "trainer/data/dataset.h"
#include "trainer/data/pictures/augment.h"

size_t pixels_count(const struct dataset *d); /* elements of one image */

/* Sets d->mean and d->std from n u8 images: integer sums, population variance; a constant channel has std 1. */
void pixels_stats(struct dataset *d, const uint8_t *images, int64_t n);

/* Mean and deviation of the levels of one channel, from how often each occurs. */
void pixels_moments(const uint64_t counts[256], double *mean, double *std);

#define PIXELS_LANES 24 /* elements per step: a multiple of 8 and of every number of channels */

/* The normalised value of each of the 256 levels per channel, computed in f64 and rounded once. */
struct pixels_table {
	float f32[DATASET_CHANNELS_MAX][256];
	double f64[DATASET_CHANNELS_MAX][256];
	/* The same f32 values as v*a + b, per lane in channel order. Each factor is split in two parts; the first
	 * parts multiply and add exactly. fused is false if any value differs from the table. */
	bool fused;
	float a[2][PIXELS_LANES], b[2][PIXELS_LANES];
};

/* Fills the table for the channels' normalisation. */
void pixels_table(struct pixels_table *ret, int channels, const struct dataset_norm *n);

/* to[i] = table of u8 from[i], or the value converted (f32 and f64 sets). `to` is f32 or f64. */
void pixels_deliver(const struct dataset *d, const struct pixels_table *t, const void *from, enum dtype to_type,
		    void *to);

/* Crops and flips a u8 image: from and to have pixels_count elements and do not overlap. */
void pixels_move(const struct dataset *d, struct augment_move draw, const uint8_t *from, uint8_t *to);

/* Returns true if the processor has AVX2 with fused multiply-add. $DPTRAIN_CPU_ISA=base disables them, here as in the
 * cpu backend. Results are equal either way. */
bool pixels_avx2(void);

#endif
