/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_files.c: weights, gradients and outputs to and from safetensors files. */
#include "config.h"

#include "trainer/state/tensor_files.h"

#include <stdio.h>
#include <string.h>

#include "tracker/base/file.h"
#include "trainer/models/decoder.h"
#include "trainer/weights/adapter_file.h"

const struct graph *files_graph(const struct tensors *s)
{
	return s->prepared->model;
}

static int put_tensor_part(void *user, const struct tensor *t, const struct weights_part_of *part, struct err *err)
{
	return tensors_put(user, t, (struct strategy_part){ part->begin, part->end }, part->data, err);
}

static int get_tensor(void *user, const struct tensor *t, void *data, struct err *err)
{
	return tensors_get(user, t, tensors_all(t), data, err);
}

static int get_part(void *user, const struct tensor *t, const struct weights_part_of *part, struct err *err)
{
	return tensors_get(user, t, (struct strategy_part){ part->begin, part->end }, part->data, err);
}

struct weights_access files_access(const struct tensors *s)
{
	return (struct weights_access){ .put = put_tensor_part, .get = get_tensor, .get_part = get_part,
					.user = (void *)s };
}

/* Reads the average of a parameter or statistic instead of its value. */
static int get_average(void *user, const struct tensor *t, void *data, struct err *err)
{
	const struct tensor *average = tensors_average(user, t);

	return get_tensor(user, average ? average : t, data, err);
}

static int get_part_of_average(void *user, const struct tensor *t, const struct weights_part_of *part, struct err *err)
{
	const struct tensor *average = tensors_average(user, t);

	return get_part(user, average ? average : t, part, err);
}

int files_load_weights(const struct tensors *s, const struct weights_load_opts *o, struct err *err)
{
	const struct weights_access access = files_access(s);

	return weights_load(files_graph(s), o, &access, err);
}

/* Adds one entry; its value goes to the rest of ret->text. */
static __attribute__((format(printf, 4, 5))) void add_meta_text(struct files_meta *ret, size_t *used, const char *key,
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

static void add_meta_channels(struct files_meta *ret, size_t *used, const char *key, const double *v, int n)
{
	char text[DATASET_CHANNELS_MAX * 30] = "";
	size_t at = 0;

	for (int i = 0; i < n && at < sizeof(text); i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, i ? ",%.17g" : "%.17g", v[i]);
	add_meta_text(ret, used, key, "%s", text);
}

static void add_image_meta(const struct workload *s, const struct run_config *cfg, struct files_meta *ret, size_t *used)
{
	const struct dataset *d = s->data;

	add_meta_text(ret, used, "act", "%s", s->config.act == MODEL_GELU ? "gelu" : "relu");
	add_meta_text(ret, used, "classes", "%d", d->classes);
	add_meta_text(ret, used, "in_channels", "%d", d->channels);
	add_meta_text(ret, used, "image_size", "%dx%d", d->height, d->width);
	if (s->class_names)
		ret->entry[ret->n++] = (struct st_meta){ "class_names", s->class_names };
	if (d->ops->hand_new && cfg->eval_resize)
		add_meta_text(ret, used, "eval_resize", "%lld", (long long)cfg->eval_resize);
	if (d->ops->hand_new && cfg->eval_transform == CONFIG_EVAL_RESIZE)
		add_meta_text(ret, used, "eval_transform", "resize");
	if (d->dtype == DTYPE_U8) {
		add_meta_channels(ret, used, "mean", s->norm.mean, d->channels);
		add_meta_channels(ret, used, "std", s->norm.std, d->channels);
	}
}

static void add_token_meta(const struct workload *s, struct files_meta *ret, size_t *used)
{
	const struct model_config *c = &s->config;

	add_meta_text(ret, used, "n_layer", "%lld", (long long)c->layers);
	add_meta_text(ret, used, "heads", "%lld", (long long)c->heads);
	add_meta_text(ret, used, "n_embd", "%lld", (long long)c->width);
	add_meta_text(ret, used, "block_size", "%lld", (long long)c->context);
	add_meta_text(ret, used, "seq_len", "%lld", (long long)c->seq_len);
	add_meta_text(ret, used, "vocab_size", "%lld", (long long)c->vocab);
	add_meta_text(ret, used, "tie_weights", "%s", c->tied ? "yes" : "no");
	if (s->data->tokenizer[0])
		add_meta_text(ret, used, "tokenizer", "%s", s->data->tokenizer);
}

void files_meta(const struct workload *workload, const struct run_config *cfg, bool averages, struct files_meta *ret)
{
	size_t used = 0;

	ret->n = 0;
	add_meta_text(ret, &used, "format", "pt"); /* PyTorch names and shapes; other readers require this entry */
	add_meta_text(ret, &used, "dptrain", "%s", PACKAGE_VERSION);
	add_meta_text(ret, &used, "model", "%s", cfg->model);
	add_meta_text(ret, &used, "weights", "%s", averages ? "ema" : "raw");
	if (averages)
		add_meta_text(ret, &used, "ema_decay", "%.17g", cfg->model_ema_decay);
	if (workload->base_hash[0])
		ret->entry[ret->n++] = (struct st_meta){ ADAPTER_HASH, workload->base_hash };
	if (workload_reads_words(workload))
		add_token_meta(workload, ret, &used);
	else
		add_image_meta(workload, cfg, ret, &used);
}

bool files_gpt(const struct workload *workload, struct hf_config *ret)
{
	const struct model_config *c = &workload->config;

	*ret = (struct hf_config){ .layers = c->layers,
				   .heads = c->heads,
				   .width = c->width,
				   .context = c->context,
				   .vocab = c->vocab,
				   .tied = c->tied,
				   .dropout = c->dropout,
				   .separator = workload->data->separator };
	if (c->decoder && !c->decoder->json)
		return false;
	if (c->decoder) {
		ret->text = c->decoder->json;
		ret->text_bytes = c->decoder->json_bytes;
		ret->folder = c->decoder->folder;
		ret->chat_template = workload->data->chat_template;
		ret->lora = c->decoder->lora.rank ? &c->decoder->lora : NULL;
	}
	return workload_reads_words(workload);
}

static bool saves_adapter(const struct workload *w)
{
	return w->config.decoder && w->config.decoder->lora.rank;
}

static int save_values(const struct files_weights *w, const char *path, bool averages, struct err *err)
{
	const bool adapter = saves_adapter(w->workload);
	struct weights_save_opts o = { .path = path, .part = adapter ? WEIGHTS_ADAPTER : WEIGHTS_MODEL };
	struct weights_access access = files_access(w->tensors);
	struct files_meta meta;

	if (averages) {
		access.get = get_average;
		access.get_part = get_part_of_average;
	}
	if (!adapter && w->workload->config.decoder && w->workload->config.decoder->json) {
		o.as = (enum dtype)w->workload->config.decoder->dtype;
		o.converts = true;
	}
	files_meta(w->workload, w->cfg, averages, &meta);
	o.meta = meta.entry;
	o.n_meta = meta.n;
	return weights_save(files_graph(w->tensors), &o, &access, err);
}

/* Inserts "-ema" before the extension of path's last component. */
static int save_averages(const struct files_weights *w, const char *path, struct err *err)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
	const size_t stem = dot ? (size_t)(dot - path) : strlen(path);
	char other[4200];
	int n = snprintf(other, sizeof(other), "%.*s-ema%s", (int)stem, path, path + stem);

	if (n < 0 || (size_t)n >= sizeof(other))
		return err_set(err, ERR_USAGE, "%.300s…: the name is too long", path);
	return save_values(w, other, true, err);
}

int files_check(const struct run_config *cfg, struct err *err)
{
	const char *const paths[] = { cfg->save_weights, cfg->save_outputs, cfg->dump_grads };
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(paths) / sizeof(*paths); i++)
		if (paths[i])
			rc = file_check_target(paths[i], err);
	return rc;
}

static int save_all(const struct files_weights *w, const char *path, struct err *err)
{
	struct hf_config gpt;
	int rc = saves_adapter(w->workload) ? file_make_parents(path, 0777, err) : 0;

	if (!rc)
		rc = save_values(w, path, false, err);
	if (!rc && w->tensors->prepared->opts.optimizer.ema_decay > 0)
		rc = save_averages(w, path, err);
	if (!rc && files_gpt(w->workload, &gpt))
		rc = hf_config_write(&gpt, path, err);
	return rc;
}

int files_save_weights(const struct files_weights *w, const char *path, struct err *err)
{
	if (w->tensors->comm->rank > 0)
		return tensors_help(w->tensors, err);
	return tensors_helped(w->tensors, save_all(w, path, err), err);
}

int files_save_grads(const struct tensors *tensors, const struct graph *g, const char *path, struct err *err)
{
	struct weights_save_opts o = { .path = path };
	struct tensors s = *tensors;
	struct weights_access access;

	for (int i = 0; i < g->n_tensors; i++)
		if (weights_is_adapter(g->tensors[i]))
			o.part = WEIGHTS_ADAPTER; /* the other parameters have none */
	s.grads = g;
	if (s.comm->rank > 0)
		return tensors_help(&s, err);
	access = files_access(&s);
	return tensors_helped(&s, weights_save(files_graph(&s), &o, &access, err), err);
}

static int fetch_outputs(void *user, size_t i, const void **ret, struct err *err)
{
	(void)i, (void)err;
	*ret = user;
	return 0;
}

int files_save_outputs(const struct workload *workload, const double *outputs, int64_t n, const char *path,
		       struct err *err)
{
	const bool words = workload_reads_words(workload);
	struct st_tensor t = { .name = "logits", .dtype = ST_F64 };

	t.dim[t.ndim++] = n;
	if (words)
		t.dim[t.ndim++] = workload->config.seq_len;
	t.dim[t.ndim++] = words ? workload->config.vocab : workload->data->classes;
	return safetensors_write(&(struct st_write_opts){ .path = path,
							  .tensors = &t,
							  .n_tensors = 1,
							  .fetch = fetch_outputs,
							  .user = (void *)outputs },
				 err);
}
