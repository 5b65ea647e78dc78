/* shard_index.h: the samples of all shards of a store, their headers read by several threads at once. */
#ifndef DPT_DATA_SHARD_INDEX_H
#define DPT_DATA_SHARD_INDEX_H

#include "trainer/data/container/samples.h"
#include "trainer/data/container/shard_list.h"
#include "trainer/data/container/webdataset.h"
#include "trainer/data/store/data_objects.h"

struct shard_index_opts {
	const struct webdataset_fields *fields;
	const struct shard_sums *known; /* [object]: what their index says; NULL: there is none */
	double timeout_s;		/* of index files beside remote shards */
};

/* In the order of objects, then of entries: whatever the threads. Remote shards whose labels are known and that have
 * DALI's index beside them are not read; *ret_whole: those of known labels that were, for want of it. *ret is
 * samples_done's; what was lost is in it. */
int shard_index(struct samples *ret, struct objects *store, const struct shard_index_opts *o, int *ret_whole,
		struct err *err);

#endif
