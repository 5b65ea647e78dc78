/* SPDX-License-Identifier: Apache-2.0 */
/* pieces.h: which pieces of documents share a sample: best fit decreasing. */
#ifndef DPT_DATA_PIECES_H
#define DPT_DATA_PIECES_H

#include "tracker/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct document_piece {
	int64_t begin; /* token offset in the sequence of documents */
	uint32_t n;    /* tokens, at least 1 */
	uint32_t document;
	bool ends; /* the document ends with it; otherwise the next token is its last target */
};

/* Zeroed: empty. Pieces are added by mem_push. */
struct pieces {
	struct document_piece *piece; /* by sample, after pieces_group */
	int64_t n;
	size_t cap;
	int64_t *first; /* [sample]: its first piece; the last entry is n */
	int64_t samples;
};

/* Groups pieces by sample of seq_len tokens: one each, or packed: the longest first, each where the least room remains
 * that suffices. Equal pieces give equal samples. ERR_USAGE: too many; path: of the data, for the message. */
int pieces_group(struct pieces *p, int64_t seq_len, bool packed, const char *path, struct err *err);
void pieces_done(struct pieces *p);

#endif
