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

/* How a model's folder wants its text generated: generation_config.json or, without that file, config.json. */
struct decoder_generation {
	int64_t end[DECODER_ENDS_MAX]; /* tokens that end a text: eos_token_id, a number or a list */
	int n_ends;
	double temperature;  /* 0 where do_sample is false; NAN: not said */
	double top_k, top_p; /* NAN: not said */
};

/* ERR_USAGE names the file and the key. */
int decoder_file_generation(struct decoder_generation *ret, const struct decoder_config *c, struct err *err);

#endif
