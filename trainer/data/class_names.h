/* SPDX-License-Identifier: Apache-2.0 */
/* class_names.h: the names of a set's classes as a JSON list, and a set whose labels are those of trained weights: by
 * the classes' names, since an index means another class in a set with other classes. */
#ifndef DPT_DATA_CLASS_NAMES_H
#define DPT_DATA_CLASS_NAMES_H

#include "trainer/data/dataset.h"

struct json_t;

/* A JSON string. Bytes of a file's name that are not UTF-8 become question marks. */
struct json_t *class_names_json_text(const char *text);

/* A JSON list of at most `most` names, by label. */
struct json_t *class_names_json(const struct dataset *d, int most);

/* Returns the names of all classes as one line of JSON, which the caller frees; NULL: out of memory. */
char *class_names_text(const struct dataset *d);

/* The classes of trained weights. */
struct class_names_trained {
	const char *path;  /* of the weights, for messages */
	const char *names; /* as from class_names_text; NULL: unknown */
	int classes;	   /* 0: unknown */
};

/* Gives the samples of d the labels that the classes have in the weights. Classes without a name keep their number.
 * ERR_USAGE: d has a class that the weights do not know. */
int class_names_match(struct dataset *d, const struct class_names_trained *w, struct err *err);

#endif
