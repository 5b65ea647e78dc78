/* tokenizer.h: text to tokens and back. "bytes": a token is a byte. Or byte-level BPE as GPT-2 has it, from a folder
 * with vocab.json and merges.txt (Sennrich et al. 2016; Radford et al. 2019): text is split into words as GPT-2's
 * pattern does, each word's bytes are merged pair by pair in the order of merges.txt. Bytes that are no UTF-8 count as
 * signs. Immutable once open: any thread may use it. */
#ifndef DPT_DATA_TOKENIZER_H
#define DPT_DATA_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"

struct tokenizer;

/* spec: "bytes", or a folder. ERR_USAGE with file and line when that is missing or damaged. */
int tokenizer_open(struct tokenizer **ret, const char *spec, struct err *err);
void tokenizer_close(struct tokenizer *t); /* NULL is fine */

const char *tokenizer_name(const struct tokenizer *t); /* "bytes", or the SHA-256 of the folder's two files, in hex */
int64_t tokenizer_vocab(const struct tokenizer *t);
int32_t tokenizer_separator(const struct tokenizer *t); /* what stands between two texts ("<|endoftext|>"); -1: none */

/* Hands the text's tokens to emit, some at a time, in order; ends with what emit returns when that is not 0. */
typedef int tokenizer_emit_fn(void *user, const int32_t *tokens, size_t n, struct err *err);

struct tokenizer_sink {
	tokenizer_emit_fn *emit;
	void *user;
};

int tokenizer_encode(const struct tokenizer *t, const char *text, size_t n, const struct tokenizer_sink *to,
		     struct err *err);

/* Where a text of which n bytes are known, and that goes on, can be cut, as far behind as possible, so that the parts
 * have the tokens of the whole; 0: nowhere. */
size_t tokenizer_cut(const struct tokenizer *t, const char *text, size_t n);

/* The bytes of one token; not NUL-terminated; valid until close. NULL when there is no such token. */
const char *tokenizer_bytes(const struct tokenizer *t, int32_t token, size_t *ret_n);

#endif
