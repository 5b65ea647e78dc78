/* batch_size.h: recommends a batch size, from the throughput measured at increasing sizes, the largest size that fits
 * and the gradient noise scale (McCandlish 2018). */
#ifndef DPT_INSIGHT_BATCH_SIZE_H
#define DPT_INSIGHT_BATCH_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "tracker/base/buf.h"

enum { BATCH_SIZES_MAX = 24 };

/* Zeroed before the first size. */
struct batch_search {
	int64_t size[BATCH_SIZES_MAX]; /* samples per rank, increasing */
	double rate[BATCH_SIZES_MAX];  /* samples per second, of all ranks */
	int n;
	int ranks;
	int64_t largest; /* largest size that fits; 0: none */
	double noise;	 /* critical batch size: samples per step whose gradient is as much noise as signal; NaN:
			  * unknown */
};

/* Adds the next size. Returns true if neither this size nor the previous one raised the best rate: stop the search. */
bool batch_add(struct batch_search *s, int64_t size, double rate);

/* Returns the index of the smallest size within 3 % of the best rate, or -1 if none was measured. */
int batch_fastest(const struct batch_search *s);

/* Appends the recommendation as one sentence. */
void batch_sentence(struct buf *out, const struct batch_search *s);

#endif
