/* batch_size.h: which batch size to train with: from rates that were measured at rising sizes, from the largest that fits
 * and from the gradient's noise (McCandlish 2018). */
#ifndef DPT_INSIGHT_BATCH_SIZE_H
#define DPT_INSIGHT_BATCH_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "tracker/base/buf.h"

enum { BATCH_SIZES_MAX = 24 };

/* Zeroed before the first size. */
struct batch_search {
	int64_t size[BATCH_SIZES_MAX]; /* samples of a rank, rising */
	double rate[BATCH_SIZES_MAX];  /* samples a second, of all ranks */
	int n;
	int ranks;
	int64_t largest; /* that fits; 0: none does */
	double noise;	 /* samples of a step whose gradient is as much noise as signal; NaN: not known */
};

/* Takes the next size; true: neither this one nor the one before it raised the best rate, larger ones need not be
 * tried. */
bool batch_add(struct batch_search *s, int64_t size, double rate);

/* The smallest size that comes within 3 % of the best rate: what a larger one brings is less than a step less. Its
 * index; -1: none was measured. */
int batch_fastest(const struct batch_search *s);

void batch_sentence(struct buf *out, const struct batch_search *s);

#endif
