/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.c: the bytes tokenizer, and what BPE tokenizers are asked for. */
#include "trainer/data/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "tracker/mem/mem.h"
#ifdef HAVE_TOKENIZERS
#include "trainer/data/tokenizer/tokenizer_encode.h"
#endif

#define BYTES "bytes"

struct tokenizer {
	struct bpe *bpe; /* NULL: bytes */
	const char *name;
	int64_t vocab;
	int32_t separator;
	char byte[256];
};

struct token_encoder {
	struct bpe_encoder *bpe; /* NULL: bytes */
};

#ifdef HAVE_TOKENIZERS
static int open_bpe(struct tokenizer *t, const char *folder, struct err *err)
{
	int rc = bpe_open(&t->bpe, folder, err);

	if (rc)
		return rc;
	t->name = t->bpe->hash;
	t->vocab = t->bpe->vocab;
	t->separator = t->bpe->separator;
	return 0;
}
#else
static int open_bpe(struct tokenizer *t, const char *folder, struct err *err)
{
	(void)t;
	return err_set(err, ERR_USAGE, "tokenizer %.300s: this dptrain was built without PCRE2 and utf8proc: use bytes",
		       folder);
}

/* Never called. */
#define bpe_close(b) ((void)(b))
#define bpe_encoder_new(b) ((void)(b), NULL)
#define bpe_encoder_free(e) ((void)(e))
#define bpe_encode(e, r, err) ((void)(e), (void)(err), ERR_USAGE)
#define bpe_cut(b, text, n) ((void)(text), (size_t)0)
#define bpe_bytes(b, token, first, ret_n) ((void)(first), NULL)
#define bpe_before(b, ret) ((void)(ret), 0)
#define bpe_special(b, text, n) ((void)(text), (void)(n), (size_t)0)
#endif

int tokenizer_open(struct tokenizer **ret, const char *spec, struct err *err)
{
	struct tokenizer *t = mem_zalloc(sizeof(*t));
	int rc = 0;

	t->name = BYTES;
	t->vocab = 256;
	t->separator = -1;
	for (int i = 0; i < 256; i++)
		t->byte[i] = (char)i;
	if (strcmp(spec, BYTES))
		rc = open_bpe(t, spec, err);
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
	return t->name;
}

int64_t tokenizer_vocab(const struct tokenizer *t)
{
	return t->vocab;
}

int32_t tokenizer_separator(const struct tokenizer *t)
{
	return t->separator;
}

int tokenizer_before(const struct tokenizer *t, const int32_t **ret)
{
	return t->bpe ? bpe_before(t->bpe, ret) : 0;
}

size_t tokenizer_special(const struct tokenizer *t, const char *text, size_t n)
{
	return t->bpe ? bpe_special(t->bpe, text, n) : 0;
}

struct token_encoder *token_encoder_new(const struct tokenizer *t)
{
	struct token_encoder *e = mem_zalloc(sizeof(*e));

	if (t->bpe)
		e->bpe = bpe_encoder_new(t->bpe);
	return e;
}

void token_encoder_free(struct token_encoder *e)
{
	if (!e)
		return;
	if (e->bpe)
		bpe_encoder_free(e->bpe);
	free(e);
}

int token_encode(struct token_encoder *e, const struct token_request *r, struct err *err)
{
	if (e->bpe)
		return bpe_encode(e->bpe, r, err);
	for (size_t i = 0; i < r->n; i++) {
		int32_t token = (unsigned char)r->text[i];
		uint32_t end = (uint32_t)i + 1;

		buf_add(r->tokens, &token, sizeof(token));
		if (r->ends)
			buf_add(r->ends, &end, sizeof(end));
	}
	return 0;
}

size_t tokenizer_cut(const struct tokenizer *t, const char *text, size_t n)
{
	return t->bpe ? bpe_cut(t->bpe, text, n) : n;
}

const char *tokenizer_bytes(const struct tokenizer *t, int32_t token, bool first, size_t *ret_n)
{
	if (token < 0 || token >= tokenizer_vocab(t))
		return NULL;
	if (t->bpe)
		return bpe_bytes(t->bpe, token, first, ret_n);
	*ret_n = 1;
	return &t->byte[token];
}
