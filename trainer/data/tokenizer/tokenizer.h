/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.h: text to tokens and back. "bytes": a token is a byte. Otherwise byte-level BPE like GPT-2's, from a
 * folder with vocab.json and merges.txt (Sennrich et al. 2016; Radford et al. 2019): the text is split into words by
 * GPT-2's pattern, and each word's bytes are merged pair by pair in the order of merges.txt. Invalid UTF-8 bytes
 * count as punctuation. Immutable once open, so thread-safe. */
#ifndef DPT_DATA_TOKENIZER_H
#define DPT_DATA_TOKENIZER_H

#include "tracker/base/err.h"

struct tokenizer;

/* spec: "bytes" or a folder. ERR_USAGE names the file and line that is missing or damaged. */
int tokenizer_open(struct tokenizer **ret, const char *spec, struct err *err);
void tokenizer_close(struct tokenizer *t); /* NULL is fine */

const char *tokenizer_name(const struct tokenizer *t); /* "bytes", or the SHA-256 of the folder's two files, in hex */
int64_t tokenizer_vocab(const struct tokenizer *t);
int32_t tokenizer_separator(const struct tokenizer *t); /* separates texts ("<|endoftext|>"); -1: none */

/* Passes the text's tokens to emit in order, in several calls. Stops with emit's result if it is not 0. */
typedef int tokenizer_emit_fn(void *user, const int32_t *tokens, size_t n, struct err *err);

struct tokenizer_sink {
	tokenizer_emit_fn *emit;
	void *user;
};

/* Encodes n bytes of text. ERR_USAGE: a word is longer than 512 MiB; or what emit returned. */
int tokenizer_encode(const struct tokenizer *t, const char *text, size_t n, const struct tokenizer_sink *to,
		     struct err *err);

/* Returns the last position where a text that continues after its n known bytes can be cut so that the parts have
 * the tokens of the whole; 0: none. */
size_t tokenizer_cut(const struct tokenizer *t, const char *text, size_t n);

/* Returns the bytes of a token, not NUL-terminated, valid until close. NULL: no such token. */
const char *tokenizer_bytes(const struct tokenizer *t, int32_t token, size_t *ret_n);

#endif
