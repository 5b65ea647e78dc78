/* tokens.h: a folder of token files as a data set; for the formats that end up as one. */
#ifndef DPT_DATA_TOKENS_H
#define DPT_DATA_TOKENS_H

#include "trainer/data/dataset.h"

#define TOKENS_TRAIN "train.tokens"
#define TOKENS_VAL "val.tokens"

/* shown: what the user named, for messages. */
int tokens_open(struct dataset **ret, const char *folder, const char *shown, int64_t seq_len, struct err *err);

#endif
