/* token_folder.h: a folder of token files as a data set; for the formats that end up as one. */
#ifndef DPT_DATA_TOKEN_FOLDER_H
#define DPT_DATA_TOKEN_FOLDER_H

#include "trainer/data/dataset.h"

#define TOKENS_TRAIN "train.tokens"
#define TOKENS_VAL "val.tokens"

/* folder: where the tokens lie; o->path is what the user named, for messages. */
int tokens_open(struct dataset **ret, const char *folder, const struct dataset_opts *o, struct err *err);

#endif
