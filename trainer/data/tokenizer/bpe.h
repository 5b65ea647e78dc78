/* bpe.h: byte-level BPE, behind tokenizer.h; words.c splits the text. */
#ifndef DPT_DATA_BPE_H
#define DPT_DATA_BPE_H

#include "trainer/data/tokenizer/tokenizer.h"

struct bpe;

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

/* Where a text that goes on can be cut, as far behind as possible, so that both parts have the words of the whole; 0:
 * nowhere. */
size_t words_cut(const char *text, size_t n);

/* One character of UTF-8 at text (n > 0): its bytes, *ret_code what it is; a byte that begins none: 1, and -1. */
size_t words_char(const char *text, size_t n, int32_t *ret_code);

#endif
