/* merge.h: the merging of one word: of all neighbours whose merge is known, the pair that was learnt first becomes one,
 * the leftmost of equals, until no pair is left. n log n in the word's length. */
#ifndef DPT_DATA_MERGE_H
#define DPT_DATA_MERGE_H

#include <stddef.h>
#include <stdint.h>

struct merge {
	int32_t left, right, to;
};

struct merges; /* by pair; their order of adding is their rank */

int merges_new(struct merges **ret, int32_t vocab);	 /* ERR_NOMEM */
int merges_add(struct merges *s, const struct merge *m); /* a pair that is known keeps its rank */
void merges_free(struct merges *s);			 /* NULL is fine */

struct merger; /* the working memory of one thread, with the words that it met of late */

int merger_new(struct merger **ret, const struct merges *s); /* s: borrowed until free */
void merger_free(struct merger *m);

/* Tokens of a word; valid until the next call. of_byte: token of each byte. NULL when memory ran out. */
const int32_t *merger_word(struct merger *m, const int32_t of_byte[256], const char *bytes, size_t n, size_t *ret_n);

#endif
