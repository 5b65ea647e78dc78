/* SPDX-License-Identifier: Apache-2.0 */
/* document_pack.c: documents of token files as samples. */
#include "trainer/data/formats/document_pack.h"

#include <stdlib.h>

#include "tracker/mem/mem.h"
#include "trainer/data/formats/pieces.h"

struct document_pack {
	const struct token_set *set;
	int64_t seq_len;
	struct pieces pieces;
};

static int cut_documents(struct document_pack *p, const char *path, struct err *err)
{
	const struct token_set *s = p->set;
	struct pieces *to = &p->pieces;

	for (int64_t i = 0; i < s->documents; i++) {
		int64_t begin, end = token_set_document(s, i, &begin);

		if (end < 0)
			return err_set(err, ERR_USAGE, "%.300s: is damaged: document %lld has an invalid end", path,
				       (long long)i);
		for (int64_t at = begin; at < end; at += p->seq_len) {
			const int64_t n = end - at < p->seq_len ? end - at : p->seq_len;
			const struct document_piece piece = { at, (uint32_t)n, (uint32_t)i, at + n == end };

			if (n > 1 || p->seq_len == 1 || s->separator >= 0) /* the last token may have no target */
				mem_push(&to->piece, &to->n, &to->cap, piece);
		}
	}
	return 0;
}

int document_pack_new(struct document_pack **ret, const struct token_set *s, int64_t seq_len, const char *path,
		      struct err *err)
{
	struct document_pack *p;
	int rc;

	if (!s->documents)
		return err_set(err, ERR_USAGE,
			       "%.300s: has no document ends: recreate it with dptrain tokenize, or "
			       "omit --pack documents",
			       path);
	p = mem_zalloc(sizeof(*p));
	p->set = s;
	p->seq_len = seq_len;
	rc = cut_documents(p, path, err);
	if (!rc)
		rc = pieces_group(&p->pieces, seq_len, true, path, err);
	if (rc)
		document_pack_free(p);
	else
		*ret = p;
	return rc;
}

void document_pack_free(struct document_pack *p)
{
	if (!p)
		return;
	pieces_done(&p->pieces);
	free(p);
}

int64_t document_pack_samples(const struct document_pack *p)
{
	return p->pieces.samples;
}

int64_t document_pack_weight(const struct document_pack *p, int64_t sample)
{
	int64_t sum = 0;

	for (int64_t i = p->pieces.first[sample]; i < p->pieces.first[sample + 1]; i++)
		sum += p->pieces.piece[i].n - (p->pieces.piece[i].ends && p->set->separator < 0);
	return sum;
}

static void read_packed_piece(const struct document_pack *p, const struct document_piece *piece, int32_t *tokens,
			      int32_t *targets)
{
	const struct token_set *s = p->set;

	token_set_read(s, piece->begin, piece->n, tokens);
	for (uint32_t i = 1; i < piece->n; i++)
		targets[i - 1] = tokens[i];
	if (piece->ends)
		targets[piece->n - 1] = s->separator;
	else
		token_set_read(s, piece->begin + piece->n, 1, &targets[piece->n - 1]);
}

void document_pack_read(const struct document_pack *p, int64_t sample, const struct dataset_read *to)
{
	int64_t at = 0;

	for (int64_t i = p->pieces.first[sample]; i < p->pieces.first[sample + 1]; at += p->pieces.piece[i++].n) {
		read_packed_piece(p, &p->pieces.piece[i], to->tokens + at, to->targets + at);
		for (uint32_t k = 0; to->positions && k < p->pieces.piece[i].n; k++)
			to->positions[at + k] = (int32_t)k;
	}
	for (; at < p->seq_len; at++) {
		to->tokens[at] = 0;
		to->targets[at] = -1;
		if (to->positions)
			to->positions[at] = 0;
	}
}
