/* gpt_file.h: what a GPT's weights file says of the model: sizes from names and shapes, the rest from its metadata and
 * from the config.json beside it. */
#ifndef DPT_WEIGHTS_GPT_FILE_H
#define DPT_WEIGHTS_GPT_FILE_H

#include "trainer/weights/hf_config.h"

struct gpt_file {
	struct hf_config config; /* heads 0: neither says */
	char tokenizer[72];	 /* "bytes", the SHA-256 of a BPE's files; "": it does not say */
};

/* ERR_USAGE when the file is damaged or holds no GPT-2. */
int gpt_file_describe(struct gpt_file *ret, const char *path, struct err *err);

#endif
