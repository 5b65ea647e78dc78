/* SPDX-License-Identifier: Apache-2.0 */
/* decoder_file.h: reads the config.json of a decoder-only language model of Hugging Face's transformers. */
#ifndef DPT_WEIGHTS_DECODER_FILE_H
#define DPT_WEIGHTS_DECODER_FILE_H

#include "tracker/base/arena.h"
#include "tracker/base/err.h"
#include "trainer/models/decoder.h"

/* Reads `path`. *ret is allocated in the arena. Returns 1 if it describes a decoder of a class that is known, 0 if it
 * describes a GPT-2 or there is no such file. ERR_USAGE names the key and what it asks for that dptrain does not
 * compute. */
int decoder_file_read(const struct decoder_config **ret, const char *path, struct arena *arena, struct err *err);

#define DECODER_ENDS_MAX 32

struct decoder_ends {
	int64_t token[DECODER_ENDS_MAX];
	int n;
};

/* The tokens that end a text: eos_token_id of generation_config.json in the model's folder, or without that file of its
 * config.json. ERR_USAGE: it is not an integer or a list of at most DECODER_ENDS_MAX of them. */
int decoder_file_ends(struct decoder_ends *ret, const struct decoder_config *c, struct err *err);

#endif
