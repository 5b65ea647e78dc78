/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_files.h: reads and writes persistent tensors in safetensors files, and their metadata. */
#ifndef DPT_STATE_TENSOR_FILES_H
#define DPT_STATE_TENSOR_FILES_H

#include "trainer/program/workload.h"
#include "trainer/state/tensors.h"
#include "trainer/weights/gpt_file.h"
#include "trainer/weights/weights.h"

/* Metadata of a weights file. Texts live as long as the struct and the workload. */
struct files_meta {
	struct st_meta entry[16];
	size_t n;
	char text[1024];
};

/* Describes a language model for its config.json. Returns false for other models. */
bool files_gpt(const struct workload *workload, struct hf_config *ret);

void files_meta(const struct workload *workload, const struct run_config *cfg, bool averages, struct files_meta *ret);

/* Access to the tensors for readers and writers of files: the whole tensors of s, on rank 0 (put: on every rank the
 * part that it owns). */
struct weights_access files_access(const struct tensors *s);
const struct graph *files_graph(const struct tensors *s); /* graph with every tensor of a checkpoint */

/* Every rank reads the file and keeps the part that it owns. */
int files_load_weights(const struct tensors *s, const struct weights_load_opts *o, struct err *err);

/* Checks before the first step that the requested files can be created; at the end it would be too late. */
int files_check(const struct run_config *cfg, struct err *err);

/* Collective; rank 0 writes. With --model-ema it writes the averages too: x.safetensors and x-ema.safetensors. */
struct files_weights {
	const struct tensors *tensors;
	const struct workload *workload;
	const struct run_config *cfg;
};

int files_save_weights(const struct files_weights *w, const char *path, struct err *err);

/* Collective; rank 0 writes the gradients that the last run of each rank's own program g left. */
int files_save_grads(const struct tensors *tensors, const struct graph *g, const char *path, struct err *err);

/* Rank 0: writes the logits of n samples, f64, in the evaluation set's order. */
int files_save_outputs(const struct workload *workload, const double *outputs, int64_t n, const char *path,
		       struct err *err);

#endif
