/* SPDX-License-Identifier: Apache-2.0 */
/* shard_writer.h: writes samples as tar shards in WebDataset's format, PART-000000.tar …, with wids' index PART.json
 * (sizes, MD5, and the CRC-32C of each 8 MiB) and DALI's PART-000000.idx next to them. Equal samples give equal
 * bytes. For one thread. */
#ifndef DPT_DATA_SHARD_WRITER_H
#define DPT_DATA_SHARD_WRITER_H

#include "tracker/base/err.h"

#define SHARD_WRITER_CRC_BYTES ((uint64_t)8 << 20)

struct shard_writer;

struct shard_writer_opts {
	const char *folder;	    /* must exist; borrowed */
	const char *part;	    /* "train" */
	uint64_t shard_bytes;	    /* largest shard; must hold two samples like the first */
	const char *const *classes; /* n_classes names; NULL: numbers only */
	int n_classes;
	int channels; /* of raw images; 0: mean and std are unknown */
	double mean[4], std[4];
};

/* Creates a writer; the first shard is created with the first sample. Free it with shard_writer_free. */
struct shard_writer *shard_writer_new(const struct shard_writer_opts *o);

struct shard_item {
	const char *field; /* "jpg" */
	const void *bytes;
	size_t n;
};

/* Adds one sample: an entry KEY.field per item. */
int shard_writer_add(struct shard_writer *w, const char *key, const struct shard_item *items, int n, struct err *err);

void shard_writer_say_decoded(struct shard_writer *w); /* notes in the index that its arrays are pictures */

/* Closes the last shard and writes the index. Both are on disk when it returns. */
int shard_writer_end(struct shard_writer *w, struct err *err);
void shard_writer_free(struct shard_writer *w); /* NULL is fine */

int shard_writer_shards(const struct shard_writer *w);
uint64_t shard_writer_bytes(const struct shard_writer *w); /* of all shards */

#endif
