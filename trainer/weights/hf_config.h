/* hf_config.h: the config.json that Hugging Face's transformers needs next to the weights of a GPT-2. */
#ifndef DPT_WEIGHTS_HF_CONFIG_H
#define DPT_WEIGHTS_HF_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "tracker/base/err.h"

struct hf_config {
	int64_t layers, heads, width, context, vocab;
	bool tied;
	double dropout;
};

/* Writes config.json into the folder of the file `weights`, atomically. It replaces an existing file only if that
 * describes a GPT-2: others belong to another model. */
int hf_config_write(const struct hf_config *c, const char *weights, struct err *err);

/* Reads config.json in the folder of `weights`: returns 1 if it describes a GPT-2, 0 if there is no such file. */
int hf_config_read(struct hf_config *ret, const char *weights, struct err *err);

#endif
