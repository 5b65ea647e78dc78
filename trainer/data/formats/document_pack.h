/* SPDX-License-Identifier: Apache-2.0 */
/* document_pack.h: packs whole documents of token files into samples by best fit: a document that fits into a sample is
 * never cut, and few places stay empty. Knows no splits. */
#ifndef DPT_DATA_DOCUMENT_PACK_H
#define DPT_DATA_DOCUMENT_PACK_H

#include "trainer/data/dataset.h"
#include "trainer/data/tokenizer/token_file.h"

struct document_pack;

/* Assigns documents to samples of seq_len tokens, the longest first, each where the least room remains. A longer
 * document is cut into whole samples and a rest. Equal files give equal samples. s: borrowed until free. ERR_USAGE:
 * a file has no document ends. */
int document_pack_new(struct document_pack **ret, const struct token_set *s, int64_t seq_len, const char *path,
		      struct err *err);
void document_pack_free(struct document_pack *p); /* NULL is fine */

int64_t document_pack_samples(const struct document_pack *p);

/* Number of known targets in a sample. */
int64_t document_pack_weight(const struct document_pack *p, int64_t sample);

/* Writes tokens, targets and positions. A token's target is the next one in its document; after the last one the
 * separator (-1 if none). Empty places have token 0 and target -1. */
void document_pack_read(const struct document_pack *p, int64_t sample, const struct dataset_read *to);

#endif
