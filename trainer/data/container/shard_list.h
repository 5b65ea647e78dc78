/* shard_list.h: what a user names as shards becomes a list of addresses: folders, brace ranges
 * (train-{000000..000146}.tar, {a,b}), wids' index files, joined by "::". */
#ifndef DPT_DATA_SHARD_LIST_H
#define DPT_DATA_SHARD_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"

#define SHARD_LIST_MAX 1000000
#define SHARD_SUFFIX ".tar"

/* What an index file says besides its shards; zeros where it does not. */
struct shard_facts {
	int classes;
	bool decoded; /* arrays are pictures, of any size */
	int channels; /* of images that are stored as they are */
	double mean[4], std[4];
};

/* What an index says of a shard, and a listing; zeros where they do not. */
struct shard_sums {
	uint32_t *at; /* CRC-32C of each 8 MiB, the last piece being what is left: n of them */
	size_t n;
	uint64_t bytes;
	char *labels; /* of its samples in their order, "0 2 1" */
	/* What the listing of a store's folder says of it; NULL: it was not listed, or has no version. */
	char *version;
	uint64_t listed_bytes;
};

struct shard_list {
	double timeout_s; /* for index files on servers, set by the caller; 0: as usual */
	bool (*takes)(const char *name); /* set by the caller: what a folder's files are asked; NULL: shards */
	const char *expects; /* … and what they are, for messages */
	bool may_be_none; /* set by the caller: a folder without any adds none */
	char **address;
	struct shard_sums *sums; /* of each */
	int n, cap;
	struct shard_facts facts; /* of the last index file */
};

/* Which shards of a folder: those named train-…, those named val-… (or valid, validation, test), or all. */
enum shard_part { SHARDS_ALL, SHARDS_TRAIN, SHARDS_VAL };

/* What a command line names is recorded with the run: ERR_USAGE where it holds a password or a signature.
 * shard_list_add looks itself. */
int shard_list_check(const char *spec, struct err *err);

/* Adds the shards that spec names. ERR_USAGE for what cannot be read and for a folder without shards of that part; for
 * SHARDS_VAL such a folder, and what is no folder, adds nothing. */
int shard_list_add(struct shard_list *l, const char *spec, enum shard_part part, struct err *err);
void shard_list_done(struct shard_list *l); /* a zeroed one is fine */

/* The n addresses, each of them and the table the caller's to free from now on; the list is done. */
char **shard_list_take(struct shard_list *l);

/* "tar", "tfrecord", "lmdb", "parquet", "arrow", as the name of a shard says. */
const char *shard_list_format(const char *name);

/* Whether spec looks like shards: the name of one, an index file, a list, or a folder with shards in it. */
bool shard_list_probe(const char *spec);

#endif
