/* slots.h: the size and number of a loader's batch slots: a function of its options, so that a memory plan can ask
 * before a loader exists. */
#ifndef DPT_DATA_SLOTS_H
#define DPT_DATA_SLOTS_H

#include "trainer/data/loader/fill.h"
#include "trainer/data/loader/loader.h"

#define SLOTS_ALIGN_BYTES 64

struct slots {
	int n;
	int64_t capacity;    /* samples per slot: those of the largest micro-batch */
	int64_t chunk;	     /* samples that a thread claims at a time */
	size_t sample_bytes; /* of one delivered input */
	size_t input_bytes;  /* of the inputs of a slot; the targets follow */
	size_t bytes;	     /* of a slot */
};

struct fill slots_fill(const struct loader_opts *o); /* without its table */

/* Fails (negative) when the sizes overflow. */
int slots_measure(struct slots *ret, const struct loader_opts *o);

#endif
