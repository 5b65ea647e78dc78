/* SPDX-License-Identifier: Apache-2.0 */
/* document_pack.c: pieces of documents, sorted by length with a counting sort, for best_fit.h. */
#include "trainer/data/formats/document_pack.h"

#include <stdlib.h>

#include "tracker/mem/mem.h"
#include "trainer/data/formats/best_fit.h"

struct pack_piece {
	int64_t begin; /* token offset in the sequence */
	uint32_t n;    /* tokens */
	bool ends;     /* the piece ends its document */
};

struct document_pack {
	const struct token_set *set;
	int64_t seq_len;
	struct pack_piece *piece; /* by sample */
	int64_t n;
	int64_t *first; /* [sample]: its first piece; the last entry is n */
	int64_t samples;
};

struct pack_builder {
	struct document_pack *p;
	uint32_t *sample; /* [piece] */
};

/* The first pass (at NULL) counts pieces by length. The second writes them, the longest first, at at[length]. */
static int cut_documents(struct document_pack *p, int64_t *count, int64_t *at, const char *path, struct err *err)
{
	const struct token_set *s = p->set;

	for (int64_t i = 0; i < s->documents; i++) {
		int64_t begin, rest, pieces, end = token_set_document(s, i, &begin);

		if (end < 0)
			return err_set(err, ERR_USAGE, "%.300s: is damaged: document %lld has an invalid end", path,
				       (long long)i);
		rest = (end - begin) % p->seq_len;
		/* a single last token without a target is dropped */
		pieces = (end - begin) / p->seq_len + (rest > 1 || (rest && s->separator >= 0));
		for (int64_t k = 0; k < pieces; k++) {
			int64_t from = begin + k * p->seq_len, left = end - from;
			uint32_t length = (uint32_t)(left < p->seq_len ? left : p->seq_len);

			if (at)
				p->piece[at[length]++] = (struct pack_piece){ from, length, length == left };
			else
				count[length]++;
		}
		p->n += at ? 0 : pieces;
	}
	return 0;
}

static int sort_pieces(struct document_pack *p, const char *path, struct err *err)
{
	int64_t *count = mem_array((size_t)p->seq_len + 2, sizeof(*count)), sum = 0;
	int rc = cut_documents(p, count, NULL, path, err);

	if (!rc && p->n >= (int64_t)UINT32_MAX)
		rc = err_set(err, ERR_USAGE, "%.300s: has %lld pieces of documents, more than can be packed", path,
			     (long long)p->n);
	if (!rc)
		p->piece = mem_alloc((size_t)p->n * sizeof(*p->piece));
	for (int64_t length = p->seq_len; !rc && length >= 0; length--) {
		sum += count[length];
		count[length] = sum - count[length];
	}
	if (!rc)
		rc = cut_documents(p, count, count, path, err);
	free(count);
	return rc;
}

static void fit_pieces(struct pack_builder *k)
{
	struct document_pack *p = k->p;
	uint32_t *length = mem_alloc((size_t)p->n * sizeof(*length) + 1);

	for (int64_t i = 0; i < p->n; i++)
		length[i] = p->piece[i].n;
	p->samples = best_fit(length, p->n, p->seq_len, k->sample);
	free(length);
}

/* Groups pieces by sample, in a stable order. */
static void group_pieces_by_sample(struct pack_builder *k)
{
	struct document_pack *p = k->p;
	struct pack_piece *by = mem_alloc((size_t)p->n * sizeof(*by));

	p->first = mem_array((size_t)p->samples + 2, sizeof(*p->first));
	for (int64_t i = 0; i < p->n; i++)
		p->first[k->sample[i] + 2]++;
	for (int64_t s = 2; s <= p->samples; s++)
		p->first[s] += p->first[s - 1];
	for (int64_t i = 0; i < p->n; i++)
		by[p->first[k->sample[i] + 1]++] = p->piece[i];
	free(p->piece);
	p->piece = by;
}

int document_pack_new(struct document_pack **ret, const struct token_set *s, int64_t seq_len, const char *path,
		      struct err *err)
{
	struct pack_builder k = { .p = NULL };
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
	rc = sort_pieces(p, path, err);
	if (rc) {
		document_pack_free(p);
		return rc;
	}
	k.p = p;
	k.sample = mem_alloc((size_t)p->n * sizeof(*k.sample));
	fit_pieces(&k);
	group_pieces_by_sample(&k);
	free(k.sample);
	*ret = p;
	return 0;
}

void document_pack_free(struct document_pack *p)
{
	if (!p)
		return;
	free(p->piece);
	free(p->first);
	free(p);
}

int64_t document_pack_samples(const struct document_pack *p)
{
	return p->samples;
}

int64_t document_pack_weight(const struct document_pack *p, int64_t sample)
{
	int64_t sum = 0;

	for (int64_t i = p->first[sample]; i < p->first[sample + 1]; i++)
		sum += p->piece[i].n - (p->piece[i].ends && p->set->separator < 0);
	return sum;
}

static void read_packed_piece(const struct document_pack *p, const struct pack_piece *piece, int32_t *tokens,
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

	for (int64_t i = p->first[sample]; i < p->first[sample + 1]; at += p->piece[i++].n) {
		read_packed_piece(p, &p->piece[i], to->tokens + at, to->targets + at);
		for (uint32_t k = 0; to->positions && k < p->piece[i].n; k++)
			to->positions[at + k] = (int32_t)k;
	}
	for (; at < p->seq_len; at++) {
		to->tokens[at] = 0;
		to->targets[at] = -1;
		if (to->positions)
			to->positions[at] = 0;
	}
}
