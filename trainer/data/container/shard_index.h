/* shard_index.h: the samples of all shards of a store, their headers read by several threads at once. */
#ifndef DPT_DATA_SHARD_INDEX_H
#define DPT_DATA_SHARD_INDEX_H

#include "trainer/data/container/samples.h"
#include "trainer/data/container/webdataset.h"
#include "trainer/data/store/objects.h"

/* In the order of objects, then of entries: whatever the threads. *ret is samples_done's; what was lost is in it. */
int shard_index(struct samples *ret, struct objects *store, const struct webdataset_fields *f, struct err *err);

#endif
