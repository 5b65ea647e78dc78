/* shard_writer.h: writes samples as tar shards by WebDataset's conventions, PART-000000.tar …, and beside them wids'
 * index PART.json (sizes, MD5, and the CRC-32C of each 8 MiB) and DALI's PART-000000.idx. The same samples give
 * the same bytes. One thread. */
#ifndef DPT_DATA_SHARD_WRITER_H
#define DPT_DATA_SHARD_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"

#define SHARD_WRITER_CRC_BYTES ((uint64_t)8 << 20)

struct shard_writer;

struct shard_writer_opts {
	const char *folder; /* is there; borrowed */
	const char *part;   /* "train" */
	uint64_t shard_bytes; /* a shard is closed before it would grow beyond this; two of the first sample fit */
	const char *const *classes; /* names of n_classes; NULL: only numbers are known */
	int n_classes;
	int channels; /* of images that are stored as they are; 0: mean and std are not known */
	double mean[4], std[4];
};

int shard_writer_new(struct shard_writer **ret, const struct shard_writer_opts *o, struct err *err);

struct shard_item {
	const char *field; /* "jpg" */
	const void *bytes;
	size_t n;
};

/* One sample: KEY.field for each item. */
int shard_writer_add(struct shard_writer *w, const char *key, const struct shard_item *items, int n, struct err *err);

void shard_writer_say_decoded(struct shard_writer *w); /* its arrays are pictures, for the index to say */

/* Closes the last shard and writes the index; both lie on the disk when it returns. */
int shard_writer_end(struct shard_writer *w, struct err *err);
void shard_writer_free(struct shard_writer *w); /* NULL is fine */

int shard_writer_shards(const struct shard_writer *w);
uint64_t shard_writer_bytes(const struct shard_writer *w); /* of all shards */

#endif
