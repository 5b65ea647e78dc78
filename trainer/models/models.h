/* models.h: the models of models.def. A model is a function that adds its nodes to an empty graph; it knows shapes and
 * names, nothing of memory, backends, strategies or precision. */
#ifndef DPT_MODELS_MODELS_H
#define DPT_MODELS_MODELS_H

#include "trainer/graph/graph.h"

enum model_act { MODEL_RELU, MODEL_GELU };

/* What a model can be asked for. Fields that a model has no use for are ignored. */
struct model_config {
	/* Networks of images. */
	int classes;
	int in_channels;
	int image_h, image_w;
	enum model_act act;
	double label_smoothing;
	bool zero_init_residual; /* the last batch-norm gain of each residual block starts at 0 */

	/* Language models. */
	int64_t layers, heads, width;
	int64_t context; /* positions that are learnt */
	int64_t seq_len; /* positions of a sample, at most context */
	int64_t vocab;
	bool tied;	    /* the classifier is the table of the token embedding */
	double dropout;	    /* of embeddings, attention's probabilities and what each block adds */
	bool decode;	    /* evaluation goes on with one text: batch is then the number of new positions; inputs
			     * "positions" (their rows of the position table) and "first" (i32 [1], the first one) */
	bool keep_logits;   /* evaluation leaves "logits" for the host, [batch * seq_len, vocab] */
};

struct model {
	const char *name;
	const char *head;  /* how the names of the tensors begin whose size depends on the classes; NULL: none do */
	bool reads_tokens; /* a language model; else a network of images */
	struct model_config defaults;

	/* Adds the whole network to g, as g->training says: inputs "images" (floats [N,H,W,C]) and "labels" (i32 [N]),
	 * or "tokens" and "targets" (i32 [N,T], a target below 0 is ignored); the tensor "logits" (readable by the host
	 * after an evaluation; of language models on request) and the result "result", which becomes g->loss.
	 * Parameters and statistics bear torchvision's or Hugging Face's names. batch >= 0. Returns 0, or a negative
	 * code with err filled (an image too small for the network, a size out of range). */
	int (*build)(const struct model *m, struct graph *g, const struct model_config *c, int64_t batch,
		     struct err *err);

	const void *spec; /* sizes that only the family's own file reads */
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

const struct model *model_find(const char *name); /* NULL: no such model */

/* Builds g with m->build after the checks that all models share (sizes in range, at least 2 classes). */
int model_build(const struct model *m, struct graph *g, const struct model_config *c, int64_t batch, struct err *err);

int64_t model_parameter_count(const struct graph *g); /* elements of all trained tensors */

#endif
