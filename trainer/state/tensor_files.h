/* tensor_files.h: persistent tensors to and from safetensors files, with what such a file says about itself. */
#ifndef DPT_STATE_TENSOR_FILES_H
#define DPT_STATE_TENSOR_FILES_H

#include "trainer/program/workload.h"
#include "trainer/state/tensors.h"
#include "trainer/weights/weights.h"

/* What a weights file says about itself. Texts live as long as the struct. */
struct files_meta {
	struct st_meta entry[16];
	size_t n;
	char text[1024];
};

void files_meta(const struct workload *subject, const struct run_config *cfg, bool averages, struct files_meta *ret);

/* What the weights of this graph are read from and written to: the whole tensors of s, at rank 0 (put: on every rank
 * what it holds). */
struct weights_access files_access(const struct tensors *s);
const struct graph *files_graph(const struct tensors *s); /* that has every tensor of a checkpoint */

/* Every rank reads the file and keeps what it holds. */
int files_load_weights(const struct tensors *s, const struct weights_load_opts *o, struct err *err);

/* Before the first step: whether the files that the run is asked for can be made; at its end a no comes too late. */
int files_check(const struct run_config *cfg, struct err *err);

/* Collective; rank 0 writes. With --model-ema the averages too, beside it: x.safetensors and x-ema.safetensors. */
struct files_weights {
	const struct tensors *tensors;
	const struct workload *subject;
	const struct run_config *cfg;
};

int files_save_weights(const struct files_weights *w, const char *path, struct err *err);

/* Collective; rank 0 writes the gradients that the program of that graph, each rank's own, left behind. */
int files_save_grads(const struct tensors *tensors, const struct graph *g, const char *path, struct err *err);

/* Rank 0: logits of n samples, f64, in the evaluation set's order. */
int files_save_outputs(const struct workload *subject, const double *outputs, int64_t n, const char *path,
		       struct err *err);

#endif
