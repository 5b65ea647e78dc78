/* slots.h: how large the batch slots of a loader are and how many it needs; a function of its options alone, so that a
 * plan can ask before there is a loader. */
#ifndef DPT_DATA_SLOTS_H
#define DPT_DATA_SLOTS_H

#include "trainer/data/loader/fill.h"
#include "trainer/data/loader/loader.h"

#define SLOTS_ALIGN_BYTES 64

struct slots {
	int n;
	int64_t capacity;    /* samples of one: of the largest micro-batch */
	int64_t chunk;	     /* samples that a thread claims at once */
	size_t sample_bytes; /* of one delivered input */
	size_t input_bytes;  /* of all inputs of a slot; its targets stand behind them */
	size_t bytes;	     /* of a slot */
};

struct fill slots_fill(const struct loader_opts *o); /* without its table */

/* Fails (negative) when the sizes overflow. */
int slots_measure(struct slots *ret, const struct loader_opts *o);

#endif
