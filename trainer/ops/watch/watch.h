/* watch.h: what a tensor's numbers are like. Both act in steps that are watched (page.watch) alone; after any other
 * step their outputs mean nothing.
 *   watch       in x, before?   out f64 [WATCH_VALUES] of x - before, or of x; before has x's type and shape
 *   watch_hold  in x            out y = x
 * Parts of a tensor add up, value by value, but for WATCH_LARGEST, of which the largest counts. */
#ifndef DPT_OPS_WATCH_H
#define DPT_OPS_WATCH_H

#include <string.h>

#include "trainer/graph/host_device.h"
#include "trainer/graph/graph.h"

/* Bucket k counts numbers with 2^(WATCH_EXPONENT + k) <= |x| < twice that; the first also what is smaller but not zero,
 * the last also what is larger. */
#define WATCH_BUCKETS 64
#define WATCH_EXPONENT (-48)

enum {
	WATCH_SUMSQ,	 /* sum of squares; what is not finite is left out, here and of the largest */
	WATCH_LARGEST,	 /* magnitude */
	WATCH_ZEROS,	 /* how many are zero */
	WATCH_NONFINITE, /* how many are not finite; these are in no bucket, nor are zeros */
	WATCH_BUCKET,
	WATCH_VALUES = WATCH_BUCKET + WATCH_BUCKETS
};

/* exponent: of 2, of the largest power that is not above the number. */
HOST_DEVICE_INLINE int watch_bucket(int exponent)
{
	const int k = exponent - WATCH_EXPONENT;

	return k < 0 ? 0 : k < WATCH_BUCKETS ? k : WATCH_BUCKETS - 1;
}

/* The exponent of a finite number that is not zero; of a denormal one some number below all others. */
HOST_DEVICE_INLINE int watch_exponent(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return (int)(bits >> 52 & 0x7ff) - 1023;
}

/* name: of node and result. before may be NULL. Both return the output; NULL once the graph failed. */
struct tensor *watch_add(struct graph *g, struct tensor *x, struct tensor *before, const char *name);
struct tensor *watch_hold_add(struct graph *g, struct tensor *x);

#endif
