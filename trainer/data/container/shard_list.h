/* SPDX-License-Identifier: Apache-2.0 */
/* shard_list.h: expands a user's shard specification to a list of addresses: folders, brace ranges
 * (train-{000000..000146}.tar, {a,b}) and wids' index files, joined by "::". */
#ifndef DPT_DATA_SHARD_LIST_H
#define DPT_DATA_SHARD_LIST_H

#include "tracker/base/err.h"
#include "trainer/data/data_account.h"

#define SHARD_LIST_MAX 1000000
#define SHARD_SUFFIX ".tar"

/* What an index file states besides its shards; zeros if absent. */
struct shard_facts {
	int classes;
	const char **names; /* of the classes, in one block that the owner frees; NULL: unknown */
	bool decoded; /* arrays are decoded pictures of any size */
	int channels; /* of raw images */
	double mean[4], std[4];
};

/* What an index file, or a listing, states about a shard; zeros if absent. */
struct shard_sums {
	uint32_t *at; /* CRC-32C of each 8 MiB piece and of the rest: n of them */
	size_t n;
	uint64_t bytes;
	char *labels; /* labels of its samples in order, as in "0 2 1" */
	/* From the listing of a store's folder; NULL: not listed, or without a version. */
	char *version;
	uint64_t listed_bytes;
};

#define SHARD_GAP_BYTES 400

struct shard_list {
	double timeout_s;		 /* for index files on servers, set by the caller; 0: default */
	bool (*takes)(const char *name); /* set by the caller: selects a folder's files by name; NULL: shards */
	const char *expects;		 /* … and describes them, for messages */
	bool may_be_none;		 /* set by the caller: a folder without matching files is no error */
	/* Set by the caller: receives the files of remote folders that are no shards, or of another split. NULL: none.
	 * A local folder is walked by the caller. */
	struct data_account *account;
	char **address;
	struct shard_sums *sums; /* for each address */
	int n, cap;
	struct shard_facts facts; /* from the last index file */
	char gap[SHARD_GAP_BYTES]; /* names the numbers that a folder's shards without a total lack; "": none */
};

/* Which shards of a folder: those named train-… (without any: those that name no split; without these: all), those for
 * evaluation (validation-…, else valid-…, else val-…, else test-…), or all. */
enum shard_part { SHARDS_ALL, SHARDS_TRAIN, SHARDS_VAL };

/* ERR_USAGE if spec contains a password or a signature: command lines are recorded with the run. shard_list_add
 * calls it itself. */
int shard_list_check(const char *spec, struct err *err);

/* Adds the shards that spec names. ERR_USAGE: unreadable, or a folder without shards of that part. For SHARDS_VAL
 * such a folder, and anything that is not a folder, adds nothing. */
int shard_list_add(struct shard_list *l, const char *spec, enum shard_part part, struct err *err);
/* ERR_USAGE if files that are numbered among others ("train-00003-of-00128.parquet") are not complete. count: of the
 * files of one folder. gap: see shard_list; NULL: not wanted. shard_list_add calls it itself. */
int shard_list_check_complete(char *const *address, int count, const char *folder, char *gap, struct err *err);

void shard_list_done(struct shard_list *l); /* a zeroed one is fine */

/* Format by a shard's name: "tar", "tfrecord", "lmdb", "parquet" or "arrow". */
const char *shard_list_format(const char *name);

/* Returns true if spec looks like shards: a shard's name, an index file, a list, or a folder with shards. */
bool shard_list_probe(const char *spec);

/* ---- entries and index files, for shard_list.c ---- */

int shard_list_append(struct shard_list *l, const char *address, struct err *err);

#define WIDS_NOT_LISTED (-1)

/* Merges the shards of an index file. listed: number of the first shard of its folder's listing, sorted by name; or
 * WIDS_NOT_LISTED: the index is the list. ERR_USAGE also for a shard that the folder lacks. */
int wids_read(struct shard_list *l, const char *path, int listed, struct err *err);
bool wids_probe(const char *path); /* a local file is such an index */

/* Returns true for files by which the datasets library describes the Arrow files next to them (save_to_disk). */
bool shard_list_describes(const char *name);

#endif
