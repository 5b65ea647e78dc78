/* SPDX-License-Identifier: Apache-2.0 */
/* held_out.c: evaluation samples of sets in arrays that have none. */
#include <stdlib.h>

#include "tracker/mem/mem.h"
#include "trainer/data/formats/formats.h"

int held_out_make(struct held_out *h, struct dataset *d, double share, struct err *err)
{
	const struct rng_key key = { rng_stream(d->ops->name), rng_stream("validation") };
	const int64_t n = d->n_samples[SPLIT_TRAIN];

	if (d->n_samples[SPLIT_VAL] || share <= 0)
		return 0;
	d->n_samples[SPLIT_TRAIN] = 0;
	for (int s = 0; s < SPLIT_COUNT; s++)
		h->row[s] = mem_array((size_t)n, sizeof(*h->row[s]));
	for (int64_t i = 0; i < n; i++) {
		const enum split s = rng_uniform(key, (uint64_t)i) < share ? SPLIT_VAL : SPLIT_TRAIN;

		h->row[s][d->n_samples[s]++] = (uint32_t)i;
	}
	if (!d->n_samples[SPLIT_TRAIN])
		return err_set(err, ERR_USAGE, "%.300s: no images to train on: --val-split takes all %lld", d->path,
			       (long long)n);
	return 0;
}

void held_out_done(struct held_out *h)
{
	for (int s = 0; s < SPLIT_COUNT; s++)
		free(h->row[s]);
}
