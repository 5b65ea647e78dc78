/* hf_config.h: the config.json that Hugging Face's transformers wants beside the weights of a GPT-2. */
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

/* Writes config.json into the folder that holds the file `weights` (a whole file or none). One that is there already
 * is replaced when it describes a GPT-2, and left alone when it does not: it is somebody else's. */
int hf_config_write(const struct hf_config *c, const char *weights, struct err *err);

/* Reads the config.json beside `weights`: 1 when there is one that describes a GPT-2, 0 when there is none. */
int hf_config_read(struct hf_config *ret, const char *weights, struct err *err);

#endif
