/* SPDX-License-Identifier: Apache-2.0 */
/* models.c: the table of models and the checks that they share. */
#include "trainer/models/models.h"

#include <string.h>

#define MODEL_CLASSES_MAX 1000000
#define MODEL_CHANNELS_MAX 4096
#define MODEL_IMAGE_MAX 16384
#define MODEL_BATCH_MAX (1 << 24)
#define MODEL_LAYERS_MAX 10000
#define MODEL_WIDTH_MAX (1 << 20)
#define MODEL_VOCAB_MAX (1 << 24)
#define MODEL_CONTEXT_MAX (1 << 20)

#define MODEL(name) [MODEL_##name] = &model_##name,
const struct model *const models_table[MODEL_COUNT] = {
#include "trainer/models/models.def"
};
#undef MODEL

const struct model *model_find(const char *name)
{
	for (int i = 0; i < MODEL_COUNT; i++)
		if (strcmp(models_table[i]->name, name) == 0)
			return models_table[i];
	return NULL;
}

static int check_range(const char *what, int64_t value, int64_t low, int64_t high, struct err *err)
{
	if (value >= low && value <= high)
		return 0;
	return err_set(err, ERR_USAGE, "%s is %lld: it must be between %lld and %lld", what, (long long)value,
		       (long long)low, (long long)high);
}

static int check_text_config(const struct model_config *c, struct err *err)
{
	int rc = check_range("the number of layers", c->layers, 1, MODEL_LAYERS_MAX, err);

	if (!rc)
		rc = check_range("the width", c->width, 1, MODEL_WIDTH_MAX, err);
	if (!rc)
		rc = check_range("the number of heads", c->heads, 1, c->width, err);
	if (!rc && !c->decoder && c->width % c->heads)
		rc = err_set(err, ERR_USAGE, "the width of %lld does not divide into %lld heads", (long long)c->width,
			     (long long)c->heads);
	if (!rc)
		rc = check_range("the vocabulary", c->vocab, 2, MODEL_VOCAB_MAX, err);
	if (!rc)
		rc = check_range("the context", c->context, 1, MODEL_CONTEXT_MAX, err);
	if (!rc)
		rc = check_range("the length of a sample", c->seq_len, 1, c->context, err);
	if (!rc && !(c->dropout >= 0 && c->dropout < 1))
		rc = err_set(err, ERR_USAGE, "dropout is %g: it must be at least 0 and below 1", c->dropout);
	return rc;
}

static int check_image_config(const struct model_config *c, struct err *err)
{
	int rc = check_range("the number of classes", c->classes, 2, MODEL_CLASSES_MAX, err);

	if (c->classes == 1)
		return err_set(err, ERR_USAGE, "all samples have one class, and a model needs two: add samples of "
			       "another class, or give --classes N of at least 2");
	if (!rc)
		rc = check_range("the number of image channels", c->in_channels, 1, MODEL_CHANNELS_MAX, err);
	if (!rc)
		rc = check_range("the image height", c->image_h, 1, MODEL_IMAGE_MAX, err);
	if (!rc)
		rc = check_range("the image width", c->image_w, 1, MODEL_IMAGE_MAX, err);
	if (!rc && !(c->label_smoothing >= 0 && c->label_smoothing < 1))
		rc = err_set(err, ERR_USAGE, "label smoothing is %g: it must be at least 0 and below 1",
			     c->label_smoothing);
	return rc;
}

int model_build(const struct model *m, struct graph *g, const struct model_config *c, int64_t batch, struct err *err)
{
	int rc = m->reads_tokens ? check_text_config(c, err) : check_image_config(c, err);

	if (!rc)
		rc = check_range("the batch size", batch, 0, MODEL_BATCH_MAX, err);
	return rc ? rc : m->build(m, g, c, batch, err);
}

int64_t model_parameter_count(const struct graph *g)
{
	int64_t count = 0;

	for (int i = 0; i < g->n_tensors; i++)
		if (g->tensors[i]->kind == TENSOR_PARAM)
			count += shape_count(&g->tensors[i]->shape);
	return count;
}
