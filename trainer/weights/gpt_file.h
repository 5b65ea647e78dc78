/* SPDX-License-Identifier: Apache-2.0 */
/* gpt_file.h: describes the model in a GPT's weights file: sizes from names and shapes, the rest from its metadata and
 * from the config.json in the same folder. */
#ifndef DPT_WEIGHTS_GPT_FILE_H
#define DPT_WEIGHTS_GPT_FILE_H

#include "tracker/base/err.h"
#include "trainer/models/decoder.h"

#define HF_CHAT_TEMPLATE "chat_template.jinja"

/* What config.json states, which Hugging Face's transformers needs next to the weights. */
struct hf_config {
	int64_t layers, heads, width, context, vocab;
	bool tied;
	double dropout;
	int64_t separator; /* token between texts, which begins and ends them; -1: none. Not read back */
	const char *text;  /* the whole file, of a model that is no GPT-2, borrowed; NULL: made from the above. Not read
			    * back */
	size_t text_bytes;
	const char *folder; /* with text: that of the model, whose tokenizer goes along, borrowed. Not read back */
	const char *chat_template; /* with text: the text that takes the place of the folder's; NULL: none. Not read
				    * back */
	const struct decoder_lora *lora; /* with text: the weights are those of this adapter of the model, borrowed;
					  * NULL: the model's. Not read back */
};

/* Writes config.json into the folder of the file `weights`, atomically. It replaces an existing file only if that
 * describes a GPT-2: others belong to another model. `text` is written where there is no file, and the files of a
 * tokenizer, generation_config.json and licences in `folder` are copied to it; what cannot be read is left out. Of an
 * adapter, writes adapter_config.json instead, and the chat template. */
int hf_config_write(const struct hf_config *c, const char *weights, struct err *err);

/* Reads config.json in the folder of `weights`: returns 1 if it describes a GPT-2, 0 if there is no such file.
 * ERR_USAGE names what it asks for and dptrain does not compute (another activation, epsilon or width of the inner
 * layer). */
int hf_config_read(struct hf_config *ret, const char *weights, struct err *err);

struct gpt_file {
	struct hf_config config; /* heads 0: unknown */
	char tokenizer[72];	 /* "bytes", or the SHA-256 of a BPE's files; "": unknown */
};

/* ERR_USAGE if the file is damaged or not a GPT-2. */
int gpt_file_describe(struct gpt_file *ret, const char *path, struct err *err);

#endif
