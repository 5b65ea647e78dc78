/* webdataset.h: the entries of a tar archive as samples, by WebDataset's conventions: a key is folder and name up to
 * the first dot of the name, the field is what follows it, in lower case; neighbours with one key are a sample
 * (https://github.com/webdataset/webdataset, tariterators.py). Of every sample one picture and one label are taken.
 * No name becomes a path. */
#ifndef DPT_DATA_WEBDATASET_H
#define DPT_DATA_WEBDATASET_H

#include <stdbool.h>

#include "trainer/data/container/byte_source.h"
#include "trainer/data/container/samples.h"

#define WEBDATASET_FIELD_MAX 64
#define WEBDATASET_NAME_MAX 4096
#define WEBDATASET_LABEL_MAX ((size_t)1 << 16) /* bytes of an entry that holds a label */

/* Lists of fields, the first one that a sample has being taken; "json:NAME" is member NAME of the field json. */
struct webdataset_fields {
	const char *image; /* "jpg;jpeg;png;npy" */
	const char *label; /* "cls;json:label" */
};

#define WEBDATASET_NO_RANK 1000

/* Which of a list of fields this is, from 0; WEBDATASET_NO_RANK: none of them. */
int webdataset_rank(const char *list, const char *field);

/* Where the key of an entry's name ends (the dot) and its field; false for entries that belong to no sample: folders'
 * and programs' own (__x__, ._x), names without a field. */
bool webdataset_split(const char *name, size_t *ret_key, char ret_field[WEBDATASET_FIELD_MAX]);

/* Entries of any container that names them so, grouped as they come. */
struct webdataset_groups;

struct webdataset_into {
	struct samples *to;
	const char *name; /* of the container, for messages; borrowed, as all of these */
	const struct webdataset_fields *fields;
	uint32_t object;
	/* The n bytes (at most WEBDATASET_LABEL_MAX) of an entry that holds a label; until the next call. */
	int (*text)(void *user, uint64_t offset, size_t n, const char **ret, struct err *err);
	void *user;
};

struct webdataset_entry {
	const char *name; /* at most WEBDATASET_NAME_MAX bytes */
	uint64_t offset, bytes;
};

int webdataset_groups_new(struct webdataset_groups **ret, const struct webdataset_into *into, struct err *err);
int webdataset_groups_entry(struct webdataset_groups *s, const struct webdataset_entry *e, struct err *err);
void webdataset_groups_end(struct webdataset_groups *s); /* the sample that is open is whole */
void webdataset_groups_free(struct webdataset_groups *s); /* NULL is fine */

/* The same by DALI's index of the archive (text, which is changed) and the labels of its samples, "0 2 1": nothing of
 * the archive is read. False: they do not fit each other or the fields; what was added is to be thrown away then. */
bool webdataset_take_idx(struct samples *to, char *idx, const char *labels, uint32_t object,
			 const struct webdataset_fields *f);

/* Adds the samples of an archive, which is number `object` of its store. What is damaged or has no picture or label is
 * noted in *to and passed over. Fails only where the archive cannot be read. */
int webdataset_scan(struct samples *to, const struct byte_source *archive, uint32_t object,
		    const struct webdataset_fields *f, struct err *err);

#endif
