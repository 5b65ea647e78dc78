/* SPDX-License-Identifier: Apache-2.0 */
/* bpe.h: the two steps of byte-level BPE. A text is split into words; then the bytes of a word are merged to tokens. Of
 * all adjacent pairs with a known merge, the one with the lowest rank is merged, the leftmost of equals, until none is
 * left. O(n log n) in the word's length. Private to tokenizer.c. */
#ifndef DPT_DATA_BPE_H
#define DPT_DATA_BPE_H

#include <stddef.h>
#include <stdint.h>

struct merge {
	int32_t left, right, to;
};

struct merges; /* by pair; rank is the order of adding */

struct merges *merges_new(int32_t vocab);
void merges_add(struct merges *s, const struct merge *m); /* a known pair keeps its rank */
void merges_free(struct merges *s);			  /* NULL is fine */

struct merger; /* working memory of one thread, with a cache of recent words */

struct merger *merger_new(const struct merges *s); /* s: borrowed until free */
void merger_free(struct merger *m);

#define MERGER_WORD_MAX ((size_t)INT32_MAX / 4) /* bytes */

/* Returns the tokens of a word of at most MERGER_WORD_MAX bytes, valid until the next call. of_byte: the token of each
 * byte. */
const int32_t *merger_word(struct merger *m, const int32_t of_byte[256], const char *bytes, size_t n, size_t *ret_n);

/* Bytes of the first word of a text (n > 0), as GPT-2's pattern splits:
 * 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
size_t words_next(const char *text, size_t n);

/* Returns the last position where a text that continues can be cut so that both parts have the words of the whole;
 * 0: none. */
size_t words_cut(const char *text, size_t n);

/* Decodes one UTF-8 character at text (n > 0) and returns its length. *ret_code: the code point; an invalid byte
 * returns 1 and *ret_code -1. */
size_t words_char(const char *text, size_t n, int32_t *ret_code);

#endif
