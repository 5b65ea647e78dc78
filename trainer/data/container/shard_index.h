/* shard_index.h: indexes the samples of all shards of a store, with several threads. */
#ifndef DPT_DATA_SHARD_INDEX_H
#define DPT_DATA_SHARD_INDEX_H

#include "trainer/data/container/samples.h"
#include "trainer/data/container/shard_list.h"
#include "trainer/data/container/webdataset.h"
#include "trainer/data/store/data_objects.h"

struct shard_index_opts {
	const struct webdataset_fields *fields;
	const struct shard_sums *known; /* [object]: from their index file; NULL: no index file */
	double timeout_s;		/* for index files next to remote shards */
};

/* The result is ordered by object, then by entry, whatever the threads do. A remote shard with known labels and with
 * DALI's index next to it is not read. *ret_whole: number of shards with known labels that were read because that
 * index was missing. The caller ends *ret with samples_done; unusable samples are in its notes. */
int shard_index(struct samples *ret, struct objects *store, const struct shard_index_opts *o, int *ret_whole,
		struct err *err);

#endif
