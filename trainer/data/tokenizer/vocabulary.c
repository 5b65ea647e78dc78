/* SPDX-License-Identifier: Apache-2.0 */
/* vocabulary.c: finds tokens by their bytes. */
#include "trainer/data/tokenizer/vocabulary.h"

#include <string.h>

#include "tracker/base/crc32c.h"

static int32_t *find_token_slot(const struct bpe *b, const char *bytes, size_t n)
{
	size_t i = crc32c(0, bytes, n) & (b->n_index - 1);

	for (;; i = (i + 1) & (b->n_index - 1)) {
		const struct vocab_piece *p = b->index[i] < 0 ? NULL : &b->pieces[b->index[i]];

		if (!p || (p->n == n && !memcmp(p->bytes, bytes, n)))
			return &b->index[i];
	}
}

void bpe_allocate(struct bpe *b, int32_t vocab)
{
	b->vocab = vocab;
	b->pieces = arena_array(b->arena, (size_t)vocab, sizeof(*b->pieces));
	for (b->n_index = 1024; b->n_index < 2 * (size_t)vocab;)
		b->n_index *= 2;
	b->index = arena_array(b->arena, b->n_index, sizeof(*b->index));
	memset(b->index, -1, b->n_index * sizeof(*b->index));
}

void bpe_index(struct bpe *b, int32_t token)
{
	*find_token_slot(b, b->pieces[token].bytes, b->pieces[token].n) = token;
}

int32_t bpe_find(const struct bpe *b, const char *bytes, size_t n)
{
	return *find_token_slot(b, bytes, n);
}

int32_t bpe_token(const struct bpe *b, const char *text)
{
	const size_t n = strlen(text);

	for (int s = 0; s < 2; s++)
		for (size_t i = 0; i < b->added[s].n; i++) {
			const struct added_token *a = &b->added[s].item[i];

			if (a->text.n == n && !memcmp(a->text.bytes, text, n))
				return a->id;
		}
	return bpe_find(b, text, n);
}
