/* tokenizer.c: the bytes tokenizer, and dispatch to BPE. */
#include "trainer/data/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "trainer/data/tokenizer/bpe.h"

#define BYTES "bytes"
#define CHUNK 4096

struct tokenizer {
	struct bpe *bpe; /* NULL: bytes */
	char byte[256];
};

int tokenizer_open(struct tokenizer **ret, const char *spec, struct err *err)
{
	struct tokenizer *t = calloc(1, sizeof(*t));
	int rc = 0;

	if (!t)
		return err_set(err, ERR_NOMEM, "out of memory: tokenizer");
	for (int i = 0; i < 256; i++)
		t->byte[i] = (char)i;
	if (strcmp(spec, BYTES))
		rc = bpe_open(&t->bpe, spec, err);
	if (rc) {
		free(t);
		return rc;
	}
	*ret = t;
	return 0;
}

void tokenizer_close(struct tokenizer *t)
{
	if (!t)
		return;
	bpe_close(t->bpe);
	free(t);
}

const char *tokenizer_name(const struct tokenizer *t)
{
	return t->bpe ? bpe_hash(t->bpe) : BYTES;
}

int64_t tokenizer_vocab(const struct tokenizer *t)
{
	return t->bpe ? bpe_vocab(t->bpe) : 256;
}

int32_t tokenizer_separator(const struct tokenizer *t)
{
	return t->bpe ? bpe_separator(t->bpe) : -1;
}

int tokenizer_encode(const struct tokenizer *t, const char *text, size_t n, const struct tokenizer_sink *to,
		     struct err *err)
{
	int32_t tokens[CHUNK];
	int rc = 0;

	if (t->bpe)
		return bpe_encode(t->bpe, text, n, to, err);
	for (size_t at = 0; !rc && at < n; at += CHUNK) {
		size_t k = n - at < CHUNK ? n - at : CHUNK;

		for (size_t i = 0; i < k; i++)
			tokens[i] = (unsigned char)text[at + i];
		rc = to->emit(to->user, tokens, k, err);
	}
	return rc;
}

size_t tokenizer_cut(const struct tokenizer *t, const char *text, size_t n)
{
	return t->bpe ? words_cut(text, n) : n;
}

const char *tokenizer_bytes(const struct tokenizer *t, int32_t token, size_t *ret_n)
{
	if (t->bpe)
		return bpe_bytes(t->bpe, token, ret_n);
	*ret_n = 1;
	return token >= 0 && token < 256 ? &t->byte[token] : NULL;
}
