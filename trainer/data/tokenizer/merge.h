/* merge.h: merges the bytes of one word to tokens. Of all adjacent pairs with a known merge, the one with the lowest
 * rank is merged, the leftmost of equals, until none is left. O(n log n) in the word's length. */
#ifndef DPT_DATA_MERGE_H
#define DPT_DATA_MERGE_H

#include <stddef.h>
#include <stdint.h>

struct merge {
	int32_t left, right, to;
};

struct merges; /* by pair; rank is the order of adding */

int merges_new(struct merges **ret, int32_t vocab);	 /* ERR_NOMEM */
int merges_add(struct merges *s, const struct merge *m); /* a known pair keeps its rank */
void merges_free(struct merges *s);			 /* NULL is fine */

struct merger; /* working memory of one thread, with a cache of recent words */

int merger_new(struct merger **ret, const struct merges *s); /* s: borrowed until free */
void merger_free(struct merger *m);

/* Returns the tokens of a word, valid until the next call. of_byte: the token of each byte. NULL: out of memory. */
const int32_t *merger_word(struct merger *m, const int32_t of_byte[256], const char *bytes, size_t n, size_t *ret_n);

#endif
