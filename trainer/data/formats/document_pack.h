/* document_pack.h: samples out of whole documents of a set of token files: best fit, so that no document is cut that fits into a
 * sample, and few places stay empty. Knows no splits. */
#ifndef DPT_DATA_DOCUMENT_PACK_H
#define DPT_DATA_DOCUMENT_PACK_H

#include "trainer/data/tokenizer/token_set.h"

struct document_pack;

/* Documents are laid into samples of seq_len tokens, the longest first, each where the least room stays; one that is
 * longer is cut into whole samples and a rest. The same files give the same samples. s: borrowed until free. ERR_USAGE
 * when one of them does not say where documents end. */
int document_pack_new(struct document_pack **ret, const struct token_set *s, int64_t seq_len, const char *path, struct err *err);
void document_pack_free(struct document_pack *p); /* NULL is fine */

int64_t document_pack_samples(const struct document_pack *p);

/* Targets of a sample that are known. */
int64_t document_pack_weight(const struct document_pack *p, int64_t sample);

/* seq_len of each. A token's target is the one behind it in its document; behind the last one the separator (-1 where
 * there is none). Empty places have token 0, target -1. */
void document_pack_read(const struct document_pack *p, int64_t sample, int32_t *tokens, int32_t *targets);

#endif
