/* bpe.h: byte-level BPE, the implementation of tokenizer.h's folders. words.c splits the text. */
#ifndef DPT_DATA_BPE_H
#define DPT_DATA_BPE_H

#include "trainer/data/tokenizer/tokenizer.h"

struct bpe;

/* Like the functions of tokenizer.h, for a folder's BPE. */
int bpe_open(struct bpe **ret, const char *folder, struct err *err);
void bpe_close(struct bpe *b); /* NULL is fine */

const char *bpe_hash(const struct bpe *b);
int64_t bpe_vocab(const struct bpe *b);
int32_t bpe_separator(const struct bpe *b);
int bpe_encode(const struct bpe *b, const char *text, size_t n, const struct tokenizer_sink *to, struct err *err);
const char *bpe_bytes(const struct bpe *b, int32_t token, size_t *ret_n);

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
