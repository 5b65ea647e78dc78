/* SPDX-License-Identifier: Apache-2.0 */
/* watch.h: statistics of a tensor's values. Both ops run only in watched steps (page.watch); after any other step their
 * outputs are undefined.
 *   watch       in x, before?   out f64 [WATCH_VALUES] of x - before, or of x; before has x's type and shape
 *   watch_hold  in x            out y = x
 * Statistics of parts of a tensor are added value by value, except WATCH_LARGEST, which is the maximum. */
#ifndef DPT_OPS_WATCH_H
#define DPT_OPS_WATCH_H

#include <string.h>

#include "trainer/graph/host_device.h"
#include "trainer/graph/graph.h"

/* Bucket k counts values with 2^(WATCH_EXPONENT + k) <= |x| < twice that. The first bucket includes smaller nonzero
 * values, the last includes larger ones. */
#define WATCH_BUCKETS 64
#define WATCH_EXPONENT (-48)

enum {
	WATCH_SUMSQ,	 /* sum of squares; this and the largest ignore non-finite values */
	WATCH_LARGEST,	 /* largest magnitude */
	WATCH_ZEROS,	 /* number of zeros */
	WATCH_NONFINITE, /* number of non-finite values; these and zeros are in no bucket */
	WATCH_BUCKET,
	WATCH_VALUES = WATCH_BUCKET + WATCH_BUCKETS
};

/* Bucket of a value with this exponent: that of the largest power of 2 not above it. */
HOST_DEVICE_INLINE int watch_bucket(int exponent)
{
	const int k = exponent - WATCH_EXPONENT;

	return k < 0 ? 0 : k < WATCH_BUCKETS ? k : WATCH_BUCKETS - 1;
}

/* Exponent of a finite nonzero value; for a denormal, a value below all others. */
HOST_DEVICE_INLINE int watch_exponent(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return (int)(bits >> 52 & 0x7ff) - 1023;
}

/* name: name of node and result. before may be NULL. Both return the output; NULL once the graph failed. */
struct tensor *watch_add(struct graph *g, struct tensor *x, struct tensor *before, const char *name);
struct tensor *watch_hold_add(struct graph *g, struct tensor *x);

#endif
