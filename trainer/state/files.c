/* files.c: weights, gradients and outputs to and from safetensors files. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/run/engine.h"
#include "trainer/weights/checkpoint.h"
#include "trainer/weights/hf_config.h"

static const struct graph *any_graph(const struct engine *e)
{
	return e->prepared.program[0]->graph;
}

int files_put(void *user, const struct tensor *t, const void *data, struct err *err)
{
	return prepared_put(&((struct engine *)user)->prepared, t, data, tensor_bytes(t), err);
}

static int get_tensor(void *user, const struct tensor *t, void *data, struct err *err)
{
	return prepared_get(&((struct engine *)user)->prepared, t, data, tensor_bytes(t), err);
}

/* A parameter's or statistic's average in the place of its value. */
static int get_average(void *user, const struct tensor *t, void *data, struct err *err)
{
	const struct prepared *p = &((const struct engine *)user)->prepared;
	const struct tensor *average = NULL;
	char name[300];

	snprintf(name, sizeof(name), "%s.ema", t->name);
	for (int i = 0; !average && i < p->n_programs; i++)
		average = graph_find(p->program[i]->graph, name);
	return get_tensor(user, average ? average : t, data, err);
}

/* A parameter's gradient in the place of its value. */
static int get_gradient(void *user, const struct tensor *t, void *data, struct err *err)
{
	return get_tensor(user, t->grad ? t->grad : t, data, err);
}

int files_load_checkpoint(struct engine *e, const struct checkpoint *c, struct err *err)
{
	return checkpoint_load(c, any_graph(e), &(struct weights_access){ files_put, get_tensor, .user = e }, err);
}

/* One entry, its value in what is left of ret->text. */
__attribute__((format(printf, 4, 5))) static void say(struct files_meta *ret, size_t *used, const char *key,
						       const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(ret->text + *used, sizeof(ret->text) - *used, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(ret->text) - *used)
		return;
	ret->entry[ret->n++] = (struct st_meta){ key, ret->text + *used };
	*used += (size_t)n + 1;
}

static void say_channels(struct files_meta *ret, size_t *used, const char *key, const double *v, int n)
{
	char text[DATASET_CHANNELS_MAX * 30] = "";
	size_t at = 0;

	for (int i = 0; i < n && at < sizeof(text); i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, i ? ",%.17g" : "%.17g", v[i]);
	say(ret, used, key, "%s", text);
}

static void say_images(const struct engine *e, struct files_meta *ret, size_t *used)
{
	const struct dataset *d = e->data;

	say(ret, used, "act", "%s", e->prepared.opts.config.act == MODEL_GELU ? "gelu" : "relu");
	say(ret, used, "classes", "%d", d->classes);
	say(ret, used, "in_channels", "%d", d->channels);
	say(ret, used, "image_size", "%dx%d", d->height, d->width);
	if (d->dtype == DTYPE_U8) {
		say_channels(ret, used, "mean", e->norm.mean, d->channels);
		say_channels(ret, used, "std", e->norm.std, d->channels);
	}
}

static void say_words(const struct engine *e, struct files_meta *ret, size_t *used)
{
	const struct model_config *c = &e->prepared.opts.config;

	say(ret, used, "n_layer", "%lld", (long long)c->layers);
	say(ret, used, "heads", "%lld", (long long)c->heads);
	say(ret, used, "n_embd", "%lld", (long long)c->width);
	say(ret, used, "block_size", "%lld", (long long)c->context);
	say(ret, used, "vocab_size", "%lld", (long long)c->vocab);
	say(ret, used, "tie_weights", "%s", c->tied ? "yes" : "no");
	if (e->data->tokenizer[0])
		say(ret, used, "tokenizer", "%s", e->data->tokenizer);
}

void files_meta(const struct engine *e, bool averages, struct files_meta *ret)
{
	size_t used = 0;

	ret->n = 0;
	say(ret, &used, "format", "pt"); /* whose names and shapes: other readers ask for it */
	say(ret, &used, "dptrain", "%s", PACKAGE_VERSION);
	say(ret, &used, "model", "%s", e->cfg->model);
	say(ret, &used, "weights", "%s", averages ? "ema" : "raw");
	if (averages)
		say(ret, &used, "ema_decay", "%.17g", e->cfg->model_ema_decay);
	if (e->model->reads_tokens)
		say_words(e, ret, &used);
	else
		say_images(e, ret, &used);
}

static int save_description(const struct engine *e, const char *path, struct err *err)
{
	const struct model_config *c = &e->prepared.opts.config;

	return hf_config_write(&(struct hf_config){ .layers = c->layers,
						    .heads = c->heads,
						    .width = c->width,
						    .context = c->context,
						    .vocab = c->vocab,
						    .tied = c->tied,
						    .dropout = c->dropout },
			       path, err);
}

static int save_values(struct engine *e, const char *path, bool averages, struct err *err)
{
	const struct weights_access access = { files_put, averages ? get_average : get_tensor, .user = e };
	struct weights_save_opts o = { .path = path };
	struct files_meta meta;

	files_meta(e, averages, &meta);
	o.meta = meta.entry;
	o.n_meta = meta.n;
	return weights_save(any_graph(e), &o, &access, err);
}

/* "-ema" in front of the ending of path's last component. */
static int save_averages(struct engine *e, const char *path, struct err *err)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
	const size_t stem = dot ? (size_t)(dot - path) : strlen(path);
	char other[4200];
	int n = snprintf(other, sizeof(other), "%.*s-ema%s", (int)stem, path, path + stem);

	if (n < 0 || (size_t)n >= sizeof(other))
		return err_set(err, ERR_USAGE, "%.300s…: the name is too long", path);
	return save_values(e, other, true, err);
}

int files_check(const struct run_config *cfg, struct err *err)
{
	const char *const paths[] = { cfg->save_weights, cfg->save_outputs, cfg->dump_grads };
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(paths) / sizeof(*paths); i++)
		if (paths[i])
			rc = safetensors_check_target(paths[i], err);
	return rc;
}

int files_save_weights(struct engine *e, const char *path, struct err *err)
{
	int rc = save_values(e, path, false, err);

	if (!rc && e->prepared.opts.optimizer.ema_decay > 0)
		rc = save_averages(e, path, err);
	if (!rc && e->model->reads_tokens)
		rc = save_description(e, path, err);
	return rc;
}

int files_save_grads(struct engine *e, const char *path, struct err *err)
{
	const struct program *p = step_program(e, 1);
	const struct weights_save_opts o = { .path = path };

	return weights_save(p->graph, &o, &(struct weights_access){ files_put, get_gradient, .user = e }, err);
}

static int fetch_outputs(void *user, size_t i, const void **ret, struct err *err)
{
	(void)i, (void)err;
	*ret = user;
	return 0;
}

int files_save_outputs(struct engine *e, const char *path, struct err *err)
{
	int64_t n = e->eval.n_samples, each = evaluate_outputs(e);
	struct st_tensor t = { .name = "logits", .dtype = ST_F64 };
	double *outputs = calloc((size_t)(n * each) + 1, sizeof(*outputs));
	struct evaluation ignored;
	int rc;

	t.dim[t.ndim++] = n;
	if (e->model->reads_tokens)
		t.dim[t.ndim++] = e->prepared.opts.config.seq_len;
	t.dim[t.ndim++] = e->model->reads_tokens ? e->prepared.opts.config.vocab : each;
	if (!outputs)
		return err_set(err, ERR_NOMEM, "out of memory: outputs of %lld samples", (long long)n);
	rc = evaluate_run(e, outputs, &ignored, err);
	if (!rc && engine_is_root(e))
		rc = safetensors_write(
			&(struct st_write_opts){
				.path = path, .tensors = &t, .n_tensors = 1, .fetch = fetch_outputs, .user = outputs },
			err);
	free(outputs);
	return rc;
}
