/* samples.h: where the samples of a set lie: object, offset, length and label of each, and its key. A table in memory,
 * or the same table mapped from a file that an earlier opening kept. Knows no container. */
#ifndef DPT_DATA_SAMPLES_H
#define DPT_DATA_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/buf.h"
#include "tracker/base/err.h"
#include "tracker/base/file_map.h"

struct sample {
	uint64_t offset; /* of its bytes in the object; packed: of the page that holds them */
	uint64_t key;	 /* where its key begins in the names */
	uint32_t bytes;
	uint32_t object;
	int32_t label;
	uint32_t packed; /* 0, or how the page is packed and where the bytes lie in it: samples_packed */
};

#define SAMPLES_INSIDE_BITS 28

/* By enum decompress_kind; the bytes begin below 2^28. */
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
	const char *names; /* keys with their field, "dir/key.jpg", each ended by a NUL */
	const char *notes; /* lines on what could not be used, each ended by a newline; at most SAMPLES_NOTES of them */
	int64_t lost;	   /* samples, and stretches that are no entries, that could not be used */
	struct buf rows, text, lines; /* what is being made */
	struct file_map map;	      /* what was kept */
};

#define SAMPLES_NOTES 16
#define SAMPLES_MAX ((int64_t)UINT32_MAX)

void samples_init(struct samples *s);
void samples_done(struct samples *s); /* a zeroed one is fine */

/* s->key is set by it. */
void samples_add(struct samples *s, const struct sample *one, const char *name);
void samples_lose(struct samples *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void samples_append(struct samples *s, const struct samples *more); /* behind what there is; more is being made too */

/* Nothing is added any more. ERR_NOMEM where memory did not suffice. */
int samples_end(struct samples *s, struct err *err);

const char *samples_name(const struct samples *s, int64_t i);

/* Keeps the table in a file, under its whole name at once; failing is no harm. */
bool samples_keep(const struct samples *s, const char *path);

/* False: there is none, or none that is whole. */
bool samples_take(struct samples *ret, const char *path);

#endif
