/* SPDX-License-Identifier: Apache-2.0 */
/* labels.h: labels of samples as files have them: numbers, texts that are numbers, truth values, or the names of
 * classes. Names become numbers in the order of their bytes once all of a set are known (samples.h). */
#ifndef DPT_DATA_LABELS_H
#define DPT_DATA_LABELS_H

#include "tracker/base/buf.h"
#include "tracker/base/err.h"

#define LABELS_NAME_MAX 255
#define LABELS_MOST INT64_C(0x7ffffffe)

struct sample_label {
	const char *wrong; /* why it cannot be used; NULL: it can */
	int64_t number;	   /* 0 to LABELS_MOST, unless there is a name */
	const char *name;  /* n bytes, borrowed; NULL: a number */
	size_t n;
};

struct sample_label label_missing(void);
bool label_is_missing(const struct sample_label *l);
struct sample_label label_of_number(int64_t number);
struct sample_label label_of_real(double value); /* an integer */

/* Spaces around the text and a UTF-8 byte order mark are ignored. What is no number is a name. */
struct sample_label label_of_text(const char *text, size_t n);

/* Reads the member `path` of a JSON object: "a.b" is a member of that name, or member b of a. If it is missing, the
 * reason lists the members that there are. *keep: initialised by the caller; holds what the label points to. */
struct sample_label label_of_json(const char *text, size_t n, const char *path, struct buf *keep);

#define LABELS_METADATA "huggingface" /* key of what the datasets library adds to a schema */

/* Appends the names of the classes, each with a NUL, that this JSON states for a column (ClassLabel). Returns their
 * number; 0: none. */
int64_t label_names_stated(const char *json, size_t n, const char *column, struct buf *ret);

/* A number that is below `classes`, unless that is 0: unknown. */
struct sample_label label_below(struct sample_label l, int64_t classes);

/* Distinct names, numbered as they come. */
struct label_names {
	struct buf text;   /* each with a NUL */
	struct buf offset; /* uint32_t [number]: in text */
	uint32_t *table;   /* by hash: number + 1; 0: free */
	size_t cap;
};

void label_names_init(struct label_names *l);
void label_names_done(struct label_names *l); /* a zeroed one is fine */
int32_t label_names_count(const struct label_names *l);
const char *label_names_at(const struct label_names *l, int32_t i);
int32_t label_names_add(struct label_names *l, const char *name, size_t n); /* returns its number */
int label_names_check(const struct label_names *l, struct err *err);	    /* ERR_USAGE: they exceed 2 GiB */

/* Numbers the names in the order of their bytes. Appends them in that order, each with a NUL, to *ret. Returns the new
 * number of each name, freed by the caller. */
int32_t *label_names_sort(const struct label_names *l, struct buf *ret);

#endif
