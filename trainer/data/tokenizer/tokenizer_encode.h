/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_encode.h: what tokenizer.h states, for BPE. Private to tokenizer.c and tokenizer_file.c. */
#ifndef DPT_DATA_TOKENIZER_ENCODE_H
#define DPT_DATA_TOKENIZER_ENCODE_H

#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/data/tokenizer/vocabulary.h"

struct bpe_encoder;

struct bpe_encoder *bpe_encoder_new(const struct bpe *b);
void bpe_encoder_free(struct bpe_encoder *e);
int bpe_encode(struct bpe_encoder *e, const struct token_request *r, struct err *err);
size_t bpe_cut(const struct bpe *b, const char *text, size_t n);
const char *bpe_bytes(const struct bpe *b, int32_t token, bool first, size_t *ret_n);
size_t bpe_special(const struct bpe *b, const char *text, size_t n);
int bpe_before(const struct bpe *b, const int32_t **ret);

#endif
