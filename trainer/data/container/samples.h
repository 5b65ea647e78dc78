/* SPDX-License-Identifier: Apache-2.0 */
/* samples.h: the table of samples: object, offset, length, label and key of each. It is built in memory, or mapped
 * from a file that an earlier run wrote. Knows no container format. */
#ifndef DPT_DATA_SAMPLES_H
#define DPT_DATA_SAMPLES_H

#include "tracker/base/file.h"
#include "trainer/data/container/labels.h"

struct sample {
	uint64_t offset; /* offset of its bytes in the object; if compressed, of their page */
	uint64_t key;	 /* offset of its key in names */
	uint32_t bytes;
	uint32_t object;
	int32_t label;
	uint32_t packed; /* 0, or the compression and the offset in the page: samples_packed */
};

#define SAMPLES_INSIDE_BITS 28

/* kind: enum decompress_kind or arrow_packing; inside: offset in the uncompressed page, below 2^28. */
static inline uint32_t samples_packed(int kind, uint32_t inside)
{
	return (uint32_t)kind << SAMPLES_INSIDE_BITS | inside;
}

static inline int samples_kind(uint32_t packed)
{
	return (int)(packed >> SAMPLES_INSIDE_BITS);
}

static inline uint32_t samples_inside(uint32_t packed)
{
	return packed & ((UINT32_C(1) << SAMPLES_INSIDE_BITS) - 1);
}

struct samples {
	const struct sample *at; /* n of them */
	int64_t n;
	const char *names;	  /* keys with their field, "dir/key.jpg", each with a NUL */
	const char **class_names; /* [label]: n_classes of them, if they have names; else 0 */
	int n_classes;
	const char *columns;	      /* that are read: "image.bytes and label"; "": the container has none */
	const char *notes;	      /* why samples were unusable: lines ended by newlines, at most SAMPLES_NOTES */
	int64_t lost;		      /* number of unusable samples and damaged stretches */
	struct buf rows, text, lines; /* a table under construction */
	struct label_names labels;    /* … label -1 - i: name i; numbered again by samples_end */
	struct buf classes;	      /* names of classes, each with a NUL: a schema's, until samples_end */
	uint32_t differs;	      /* … 1 + the first object whose schema states others; 0: none */
	struct buf used_columns;      /* … columns */
	struct file_map map;	      /* a table mapped from a file */
	/* Set by the caller before samples_end: the name of an object, for notes. NULL: none. */
	const char *(*object_name)(const void *user, uint32_t object);
	const void *user;
};

#define SAMPLES_NOTES 16

/* Starts an empty table; samples_done frees it. */
void samples_init(struct samples *s);
void samples_done(struct samples *s); /* a zeroed one is fine */

/* Adds a row; its key is set here. samples_add_label also sets its label, which must not be wrong. */
void samples_add(struct samples *s, const struct sample *one, const char *name);
void samples_add_label(struct samples *s, const struct sample *one, const char *name, const struct sample_label *label);
void samples_lose(struct samples *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void samples_use_columns(struct samples *s, const char *image, const char *label);
void samples_append(struct samples *s, const struct samples *more); /* appends; both are under construction */

/* Completes the table: nothing can be added after it. Where at least half of the labels are names, all are: numbers
 * become names of their digits, and the classes are the names in the order of their bytes. Else samples with names are
 * unusable. ERR_USAGE: the schemas of several files name other classes, or the names of labels are too many. */
int samples_end(struct samples *s, struct err *err);

const char *samples_name(const struct samples *s, int64_t i);

/* Writes the table to a file atomically. Failure is harmless. */
bool samples_keep(const struct samples *s, const char *path);

/* Maps the table from a file. False: missing or damaged. */
bool samples_take(struct samples *ret, const char *path);

#endif
