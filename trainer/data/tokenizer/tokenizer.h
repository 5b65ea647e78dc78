/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.h: text to tokens and back. "bytes": a token is a byte. Otherwise BPE from a folder with tokenizer.json as
 * Hugging Face's tokenizers write it, or with GPT-2's vocab.json and merges.txt: added tokens are found, the text is
 * normalised and split into words, and the pieces of each word are merged (bpe.h). Invalid UTF-8 bytes become the
 * tokens of bytes. Immutable once open, so thread-safe. */
#ifndef DPT_DATA_TOKENIZER_H
#define DPT_DATA_TOKENIZER_H

#include "tracker/base/buf.h"
#include "tracker/base/err.h"

struct tokenizer;

/* spec: "bytes" or a folder. ERR_USAGE names the file and the line or key that is missing, damaged or not supported. */
int tokenizer_open(struct tokenizer **ret, const char *spec, struct err *err);
void tokenizer_close(struct tokenizer *t); /* NULL is fine */

const char *tokenizer_name(const struct tokenizer *t); /* "bytes", or the SHA-256 of the folder's files, in hex */
int64_t tokenizer_vocab(const struct tokenizer *t);    /* largest token + 1 */

/* The token between texts: <|endoftext|>, or else that of the beginning, or else of the end of a text. -1: none. */
int32_t tokenizer_separator(const struct tokenizer *t);

/* The tokens that the post-processor puts in front of a text. Returns their number. */
int tokenizer_before(const struct tokenizer *t, const int32_t **ret);

/* Returns the length of the special token that the text begins with, such as <|im_end|>; 0: none. */
size_t tokenizer_special(const struct tokenizer *t, const char *text, size_t n);

struct token_encoder; /* working memory of one thread, with a cache of recent words */

struct token_encoder *token_encoder_new(const struct tokenizer *t); /* t: borrowed until free */
void token_encoder_free(struct token_encoder *e);		    /* NULL is fine */

struct token_request {
	const char *text; /* n bytes */
	size_t n;
	bool continues;	    /* a text's later part (tokenizer_cut): nothing is put in front of it */
	struct buf *tokens; /* appends the tokens as int32_t */
	struct buf *ends;   /* appends for each token the end of its text, a uint32_t; NULL: not wanted */
};

/* Encodes a text, without the tokens around it. ERR_USAGE: a word is longer than 512 MiB, or takes too many steps, or
 * the text grows too much. */
int token_encode(struct token_encoder *e, const struct token_request *r, struct err *err);

/* Returns the last position where a text that continues after its n known bytes can be cut so that the parts have
 * the tokens of the whole; 0: none. */
size_t tokenizer_cut(const struct tokenizer *t, const char *text, size_t n);

/* Returns the bytes of a token, not NUL-terminated, valid until close. first: it begins the text, where a decoder
 * may drop a space. NULL: no such token. */
const char *tokenizer_bytes(const struct tokenizer *t, int32_t token, bool first, size_t *ret_n);

#endif
