/* SPDX-License-Identifier: Apache-2.0 */
/* bpe.h: the merging step of BPE (Sennrich et al. 2016). Of all adjacent pairs of a word's tokens with a known merge,
 * the one with the lowest rank is merged, the leftmost of equals, until none is left. O(n log n) in the word's length.
 */
#ifndef DPT_DATA_BPE_H
#define DPT_DATA_BPE_H

#include <stddef.h>
#include <stdint.h>

struct merge {
	int32_t left, right, to;
};

struct merges; /* by pair; rank is the order of adding */

struct merges *merges_new(void);
void merges_add(struct merges *s, const struct merge *m); /* replaces an earlier merge of the pair, with its rank */
void merges_free(struct merges *s);			  /* NULL is fine */

/* Writes the tokens that a word of n bytes begins with, at most n, to ret, and returns how many. */
struct merger_start {
	size_t (*fill)(void *user, const char *bytes, size_t n, int32_t *ret);
	void *user;
};

struct merger; /* working memory of one thread, with a cache of recent words */

struct merger *merger_new(const struct merges *s, const struct merger_start *start); /* s: borrowed until free */
void merger_free(struct merger *m);						     /* NULL is fine */

#define MERGER_WORD_MAX ((size_t)INT32_MAX / 4) /* bytes */

/* Returns the tokens of a word of at most MERGER_WORD_MAX bytes, valid until the next call. */
const int32_t *merger_word(struct merger *m, const char *bytes, size_t n, size_t *ret_n);

#endif
