/* SPDX-License-Identifier: Apache-2.0 */
/* hf_json.h: JSON files of Hugging Face's folders. */
#ifndef DPT_WEIGHTS_HF_JSON_H
#define DPT_WEIGHTS_HF_JSON_H

#include <jansson.h>

#define CONFIG_BYTES_MAX ((size_t)16 << 20)

/* Loads a file. NULL with ret->text: it cannot be read, or is damaged. */
json_t *hf_json_load(const char *path, json_error_t *ret);

#endif
