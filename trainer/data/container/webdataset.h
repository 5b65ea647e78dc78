/* SPDX-License-Identifier: Apache-2.0 */
/* webdataset.h: the entries of a tar archive as samples, in WebDataset's format: the key is the folder and the name
 * up to the last dot, the field is the rest in lower case. Consecutive entries with one key are a sample
 * (https://github.com/webdataset/webdataset, tariterators.py). One picture and one label of each sample are used. No
 * name is used as a path. */
#ifndef DPT_DATA_WEBDATASET_H
#define DPT_DATA_WEBDATASET_H

#include "trainer/data/container/container_scan.h"

#define WEBDATASET_FIELD_MAX 64
#define WEBDATASET_NAME_MAX 4096
#define WEBDATASET_LABEL_MAX ((size_t)1 << 16) /* of an entry with a label */

#define WEBDATASET_NO_RANK 1000

/* Returns the position of a field in a list, from 0; WEBDATASET_NO_RANK: not in it. */
int webdataset_rank(const char *list, const char *field);

/* The same for a column of Parquet or Arrow, which may be a struct's member "bytes". */
int webdataset_rank_column(const char *list, const char *column);
/* Of the usual names of labels, those after the first `given` in the list, a column of numbers ranks first: it is the
 * number of a class whose name may be in another. */
int webdataset_rank_label(const char *list, int given, const char *column, bool number);
#define WEBDATASET_IMAGE_COLUMNS ";image;img;picture;bytes"
#define WEBDATASET_LABEL_COLUMNS ";label;labels;fine_label;class"

/* Joins a list of fields with the usual ones of a format, unless it was given. Returns their number without those. */
#define WEBDATASET_LIST_MAX 1024
int webdataset_list(char ret[WEBDATASET_LIST_MAX], const char *list, bool given, const char *usual);

/* Splits an entry's name at the dot into key and field. Returns false for entries that belong to no sample: folders,
 * programs' own (__x__, ._x), names without a field. */
bool webdataset_split(const char *name, size_t *ret_key, char ret_field[WEBDATASET_FIELD_MAX]);

/* Groups the entries of any container with such names into samples, in order. */
struct webdataset_groups;

struct webdataset_into {
	struct samples *to;
	const char *name; /* of the container, for messages; all pointers are borrowed */
	const struct webdataset_fields *fields;
	uint32_t object;
	/* Returns the n bytes (at most WEBDATASET_LABEL_MAX) of a label entry; valid until the next call. */
	int (*text)(void *user, uint64_t offset, size_t n, const char **ret, struct err *err);
	void *user;
};

struct webdataset_entry {
	const char *name; /* at most WEBDATASET_NAME_MAX bytes */
	uint64_t offset, bytes;
};

/* Creates a grouping that adds samples to into->to. */
struct webdataset_groups *webdataset_groups_new(const struct webdataset_into *into);
int webdataset_groups_entry(struct webdataset_groups *s, const struct webdataset_entry *e, struct err *err);
void webdataset_groups_end(struct webdataset_groups *s);  /* completes the open sample */
void webdataset_groups_free(struct webdataset_groups *s); /* NULL is fine */

/* Adds samples from DALI's index of an archive (idx, which is modified) and the labels "0 2 1", without reading the
 * archive. False: they do not match each other or the fields; the caller then discards what was added. */
bool webdataset_take_idx(struct samples *to, char *idx, const char *labels, uint32_t object,
			 const struct webdataset_fields *f);

#endif
