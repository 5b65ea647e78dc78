/* token_folder.h: opens a folder of token files as a data set, also for formats that are converted to tokens. */
#ifndef DPT_DATA_TOKEN_FOLDER_H
#define DPT_DATA_TOKEN_FOLDER_H

#include "trainer/data/dataset.h"

#define TOKENS_TRAIN "train.tokens"
#define TOKENS_VAL "val.tokens"

/* folder: contains the token files; o->path: as the user named the set, for messages. */
int tokens_open(struct dataset **ret, const char *folder, const struct dataset_opts *o, struct err *err);

#endif
