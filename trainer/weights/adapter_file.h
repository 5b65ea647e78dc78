/* SPDX-License-Identifier: Apache-2.0 */
/* adapter_file.h: LoRA adapters as PEFT has them: a folder with adapter_config.json and adapter_model.safetensors. Its
 * metadata also name the weights that it adapts, by a hash. */
#ifndef DPT_WEIGHTS_ADAPTER_FILE_H
#define DPT_WEIGHTS_ADAPTER_FILE_H

#include "tracker/base/arena.h"
#include "trainer/models/decoder.h"
#include "trainer/weights/safetensors.h"

#define ADAPTER_FOLDER "adapter" /* in the folder of a run or checkpoint */
#define ADAPTER_CONFIG "adapter_config.json"
#define ADAPTER_MODEL "adapter_model.safetensors"
#define ADAPTER_HASH "base_sha256" /* key of the metadata */

/* What a user or a file says of an adapter. */
struct adapter_terms {
	const char *lora;    /* "RANK" or "RANK,ALPHA"; without ALPHA twice the rank */
	const char *targets; /* "all-linear", or names as "q,k_proj" */
	bool rooted;
};

/* Reads the terms for a model of that class. ERR_USAGE names the flag and what it expects. */
int adapter_parse(struct decoder_lora *ret, const struct adapter_terms *t, const struct decoder_class *class,
		  struct err *err);

/* Reads the configuration in the folder; texts are allocated in the arena. *ret_base: the folder or name of the weights
 * that it adapts; "" unknown. ERR_USAGE names the file, and what it asks for that dptrain does not compute. */
int adapter_read(struct adapter_terms *ret, const char **ret_base, const char *folder, struct arena *arena,
		 struct err *err);

/* Writes adapter_config.json into the folder; base: the folder of the weights, whose full path it gets. */
int adapter_write_config(const struct decoder_lora *l, const char *base, const char *folder, struct err *err);

/* Hashes names, types, shapes and values of all tensors of the weights at path, in whatever files they are. */
int adapter_hash_base(char ret[65], const char *path, struct err *err);

/* ERR_USAGE if the adapter in the folder names other weights than those with this hash. */
int adapter_check_base(const char *folder, const char *hash, const char *base, struct err *err);

#endif
