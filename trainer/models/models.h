/* SPDX-License-Identifier: Apache-2.0 */
/* models.h: the models of models.def. A model is a function that adds its nodes to an empty graph. It knows shapes and
 * names, but not memory, backends, strategies or precision. */
#ifndef DPT_MODELS_MODELS_H
#define DPT_MODELS_MODELS_H

#include "trainer/graph/graph.h"

enum model_act { MODEL_RELU, MODEL_GELU };

/* Options of a model. A model ignores the fields it does not use. */
struct model_config {
	/* Image models. */
	int classes;
	int in_channels;
	int image_h, image_w;
	int train_h, train_w; /* size of images for training; 0: the same */
	enum model_act act;
	double label_smoothing;
	bool label_pairs;	 /* samples for training have two labels (trainer/ops/xent) */
	bool zero_init_residual; /* the last batch-norm gain of each residual block starts at 0 */

	/* Language models. */
	const struct decoder_config *decoder; /* of trainer/models/decoder.h; NULL: a GPT-2 */
	int64_t layers, heads, width;
	int64_t context; /* number of learned positions */
	int64_t seq_len; /* positions per sample, at most context */
	int64_t vocab;
	bool documents;	  /* tokens that begin a document are marked (trainer/ops/places), and attention stops there */
	bool tied;	  /* the classifier shares the token embedding table */
	double dropout;	  /* dropout of embeddings, attention probabilities and block outputs */
	bool decode;	  /* evaluation continues one text: batch is the number of new positions, context the largest
			   * number of all; inputs "first" (i32 [1], the first one) and, for a model with a position
			   * table, "positions" (its rows for them) */
	bool keep_logits; /* evaluation keeps "logits" for the host, [batch * seq_len, vocab] */
	bool keep_best;	  /* … and of a decoder "best", the words of the largest logits, [batch * seq_len] */
};

struct model {
	const char *name;
	const char *head;  /* name prefix of the tensors whose size depends on the classes; NULL: none */
	bool reads_tokens; /* language model; else image model */
	struct model_config defaults;

	/* Adds the whole network to g for training or evaluation (g->training). Inputs: "images" (floats [N,H,W,C]) and
	 * "labels" (i32 [N], or [N,2] with label_pairs), or "tokens" and "targets" (i32 [N,T]; a target below 0 is
	 * ignored). It adds the tensor "logits" (readable by the host after an evaluation; language models: on request)
	 * and the result "result", which becomes g->loss. Parameters and statistics have torchvision's or Hugging
	 * Face's names. batch >= 0. Returns 0, or a negative code with err filled (image too small for the network,
	 * size out of range). */
	int (*build)(const struct model *m, struct graph *g, const struct model_config *c, int64_t batch,
		     struct err *err);

	const void *spec; /* read only by the family's own file */
};

enum model_id {
#define MODEL(name) MODEL_##name,
#include "trainer/models/models.def"
#undef MODEL
	MODEL_COUNT
};

#define MODEL(name) extern const struct model model_##name;
#include "trainer/models/models.def"
#undef MODEL

extern const struct model *const models_table[MODEL_COUNT];

const struct model *model_find(const char *name); /* NULL: unknown */

/* Builds g with m->build after the checks that all models share (sizes in range, at least 2 classes). */
int model_build(const struct model *m, struct graph *g, const struct model_config *c, int64_t batch, struct err *err);

int64_t model_parameter_count(const struct graph *g); /* elements of all parameters */

#endif
