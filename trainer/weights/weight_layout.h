/* SPDX-License-Identifier: Apache-2.0 */
/* weight_layout.h: names and layouts of tensors in files of torchvision and Hugging Face that differ from ours:
 *   convolutions are OIHW there, KRSC here;
 *   GPT-2's products within its blocks ("Conv1D") are [in, out] there, [out, in] here;
 *   GPT-2's names may lack "transformer." there, and files may contain buffers without weights.
 * Independent of files' bytes but their element types. */
#ifndef DPT_WEIGHTS_WEIGHT_LAYOUT_H
#define DPT_WEIGHTS_WEIGHT_LAYOUT_H

#include "trainer/graph/graph.h"
#include "trainer/weights/safetensors.h"

bool layout_differs(const struct tensor *t);
int64_t layout_dim(const struct tensor *t, int i); /* dimension i as files have it */
bool layout_same_shape(const struct tensor *t, const struct st_tensor *f);

const struct st_tensor *layout_find(const struct safetensors *s, const char *name); /* in the file; NULL when absent */
struct tensor *layout_owner(const struct graph *g, const char *file_name);	    /* in the graph; NULL */

/* Returns true for a name that is not a weight: "*.num_batches_tracked" and "*.rotary_emb.inv_freq"; for
 * language models the buffers
 * "*.attn.bias" and "*.attn.masked_bias", and a classifier that repeats the embedding that it is tied to. */
bool layout_ignorable(const struct graph *g, const struct safetensors *s, const char *file_name);

/* Returns true if the file's lm_head.weight equals its token embedding. */
bool layout_repeats_table(const struct safetensors *s);

/* Rows of t in our layout (its first dimension; 1 for a scalar), and elements per row. */
struct layout_rows {
	int64_t n, each;
};

struct layout_rows layout_rows(const struct tensor *t);

/* Rows [begin, end) to convert from the layout and type of the file to ours. scratch holds layout_scratch() doubles for
 * these rows; `to` receives the first of them. */
struct layout_piece {
	int64_t begin, end;
	double *scratch;
	void *to;
};

size_t layout_scratch(const struct tensor *t, int64_t rows);
void layout_from_file(const struct tensor *t, const struct st_tensor *f, const struct layout_piece *p);

/* Converts a whole tensor from our layout to the file's; the type stays. */
void layout_to_file(const struct tensor *t, const void *from, void *to);

#endif
