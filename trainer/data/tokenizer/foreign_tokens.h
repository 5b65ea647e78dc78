/* SPDX-License-Identifier: Apache-2.0 */
/* foreign_tokens.h: token files of other programs, known by their content: llm.c's *.bin (a header of 1024 bytes with
 * a magic number), one-dimensional *.npy of 16-bit integers, and nanoGPT's train.bin and val.bin, which have no
 * header. Their names hold the split as a word: fineweb_train_000001.bin. All are little-endian. */
#ifndef DPT_DATA_FOREIGN_TOKENS_H
#define DPT_DATA_FOREIGN_TOKENS_H

#include "trainer/data/tokenizer/token_file.h"

/* Returns true if the file of the folder holds tokens of that split. */
bool foreign_tokens_probe(const char *folder, const char *file, const char *split);

/* Describes the mapped file at path. False: it holds no tokens that are known. */
bool foreign_tokens_parse(struct token_file *f, const char *path);

#endif
