/* SPDX-License-Identifier: Apache-2.0 */
/* formats.h: the formats of formats.def, the detection of a folder's format, and the cache folders of a data set. */
#ifndef DPT_DATA_FORMATS_H
#define DPT_DATA_FORMATS_H

#include "trainer/data/dataset.h"

enum formats_id {
#define FORMAT(name) FORMATS_##name,
#include "trainer/data/formats/formats.def"
#undef FORMAT
	FORMATS_COUNT
};

#define FORMAT(name) extern const struct dataset_ops dataset_##name;
#include "trainer/data/formats/formats.def"
#undef FORMAT

extern const struct dataset_ops *const formats_table[FORMATS_COUNT];

/* Opens several token sets as one (dataset_opts.mix). open_one: opens each of the sets that o->path joins by "::". */
int token_mix_open(struct dataset **ret, const struct dataset_opts *o,
	     int (*open_one)(struct dataset **ret, const struct dataset_opts *o, struct err *err), struct err *err);

/* Opens o->path with the first format that recognises it. */
int formats_open(struct dataset **ret, const struct dataset_opts *o, struct err *err);

/* Returns what a file is that is known and not read, and how to convert it: "is CSV: write …". NULL: unknown. */
const char *foreign_advice(const char *path);

/* A gzip file of any number of members, or a plain file, read from front to back. */
struct gzip_file;

int gzip_file_open(struct gzip_file **ret, const char *path, struct err *err);
void gzip_file_close(struct gzip_file *g); /* NULL is fine */

/* Reads up to n bytes. *ret_n < n only at the end of the data. ERR_USAGE: truncated or damaged. */
int gzip_file_read(struct gzip_file *g, void *to, size_t n, size_t *ret_n, struct err *err);

/* Rows of the training array that each split has, for sets in arrays that lack one for evaluation; zeroed: none. */
struct held_out {
	uint32_t *row[SPLIT_COUNT];
};

/* Holds out a share of the training rows for evaluation, if there are no others: the same ones for any share above. */
int held_out_make(struct held_out *h, struct dataset *d, double share, struct err *err);
void held_out_done(struct held_out *h);

/* Returns the array of a sample, and in *index its row. */
static inline enum split held_out_find(const struct held_out *h, enum split split, int64_t *index)
{
	if (!h->row[split])
		return split;
	*index = h->row[split][*index];
	return SPLIT_TRAIN;
}

/* The cache folder for what was derived from a data set: the set's .dptrain, or a folder in the user's
 * cache if the set's folder is read-only. */
#define CACHE_DIR_PATH_BYTES 4200

/* Joins folder/name. False: too long. */
bool cache_dir_join(char ret[CACHE_DIR_PATH_BYTES], const char *folder, const char *name);

/* Creates the set's .dptrain if needed, next to a file. False: not writable. *ret is set in any case, except for paths
 * that are too long. */
bool cache_dir_beside(const char *path, char ret[CACHE_DIR_PATH_BYTES]);

/* Creates the set's folder in the user's cache: $XDG_CACHE_HOME/dptrain/<hash of the path>, or $HOME/.cache/… */
bool cache_dir_in_cache(const char *path, char ret[CACHE_DIR_PATH_BYTES]);

/* A folder in the cache of the set at path that is filled once, by one process at a time. */
struct cache_filling {
	const char *path, *key; /* key: the folder's name */
	const char *mark;	/* the file in it that fill writes last */
	int (*fill)(void *user, const char *folder, struct err *err);
	void *user;
};

/* Returns the folder, after filling it unless another rank or an earlier run has done so. */
int cache_dir_fill(const struct cache_filling *f, char ret[CACHE_DIR_PATH_BYTES], struct err *err);

/* Waits for the exclusive lock of the folder. Close the descriptor to release it. Negative: cannot be locked
 * (errno). */
int cache_dir_lock(const char *folder);

#endif
