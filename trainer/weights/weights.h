/* weights.h: a graph's parameters and statistics from and to safetensors files. Names and shapes in files are
 * torchvision's and Hugging Face's (weight_layout.h). Memory is reached through callbacks, so that it may lie on a device. */
#ifndef DPT_WEIGHTS_WEIGHTS_H
#define DPT_WEIGHTS_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"
#include "trainer/graph/graph.h"
#include "trainer/weights/safetensors.h"

struct weights_part_of {
	int64_t begin, end; /* elements */
	void *data;
};

struct weights_access {
	/* data: in t's own type (f64 or f32) and storage order; get takes tensor_bytes(t), put gives large tensors in
	 * several parts, one behind the other. */
	int (*put)(void *user, const struct tensor *t, const struct weights_part_of *part, struct err *err);
	int (*get)(void *user, const struct tensor *t, void *data, struct err *err);
	void *user;
	/* Optional, beside get: elements [begin, end) of t. Large tensors are then not asked for whole, where files
	 * have them in the graph's order. */
	int (*get_part)(void *user, const struct tensor *t, const struct weights_part_of *part, struct err *err);
	/* Optional, in place of get: where t's bytes lie in host memory. */
	const void *(*peek)(void *user, const struct tensor *t);
};

enum weights_part {
	WEIGHTS_MODEL, /* every TENSOR_PARAM and TENSOR_STAT */
	WEIGHTS_STATE, /* everything else that lives as long as the run: the optimiser's moments, averages of weights */
};

struct weights_load_opts {
	const char *path;
	enum weights_part part;
	const char *skip; /* tensors whose names begin so stay as they are, in the file or not; NULL: none */
	const char *head; /* the same prefix of tensors that --reset-head is for, to say so; NULL: none */
};

/* Loads every tensor of the part. F64, F32, F16 and BF16 are converted; What weight_layout.h calls
 * ignorable is. Names that are missing, not expected or of another shape: ERR_USAGE, one line with the first and how
 * many; nothing is put then. */
int weights_load(const struct graph *g, const struct weights_load_opts *o, const struct weights_access *a,
		 struct err *err);
/* the same, without put */
int weights_check(const struct graph *g, const struct weights_load_opts *o, struct err *err);

/* Writes every tensor of the part in its own type, in the graph's order. */
struct weights_save_opts {
	const char *path;
	enum weights_part part;
	const struct st_meta *meta;
	size_t n_meta;
	struct st_sum *ret_sum; /* of the file; may be NULL */
};

int weights_save(const struct graph *g, const struct weights_save_opts *o, const struct weights_access *a,
		 struct err *err);

#endif
