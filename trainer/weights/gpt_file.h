/* gpt_file.h: describes the model in a GPT's weights file: sizes from names and shapes, the rest from its metadata and
 * from the config.json in the same folder. */
#ifndef DPT_WEIGHTS_GPT_FILE_H
#define DPT_WEIGHTS_GPT_FILE_H

#include "trainer/weights/hf_config.h"

struct gpt_file {
	struct hf_config config; /* heads 0: unknown */
	char tokenizer[72];	 /* "bytes", or the SHA-256 of a BPE's files; "": unknown */
};

/* ERR_USAGE if the file is damaged or not a GPT-2. */
int gpt_file_describe(struct gpt_file *ret, const char *path, struct err *err);

#endif
