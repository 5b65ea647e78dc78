/* subject.c: model and data of a run. */
#include "trainer/program/subject.h"

#include <stdio.h>
#include <string.h>

#include "trainer/data/formats/formats.h"
#include "trainer/data/formats/made.h"
#include "trainer/data/words/tokenizer.h"

const struct model *subject_model(const char *name, struct err *err)
{
	const struct model *m = model_find(name);
	const char *names[MODEL_COUNT], *near;

	if (m)
		return m;
	for (int i = 0; i < MODEL_COUNT; i++)
		names[i] = models_table[i]->name;
	near = config_nearest(name, names, MODEL_COUNT);
	err_set(err, ERR_USAGE, "--model %.60s: no such model%s%s%s", name, near ? "; did you mean " : "",
		near ? near : "", near ? "?" : "; dptrain --help lists them");
	return NULL;
}

static int open_image_batch(struct engine *e, const struct model *m, struct err *err)
{
	const struct run_config *cfg = e->cfg;
	const struct batch_file *b = e->job->batch;
	int classes = cfg->classes ? (int)cfg->classes : b->classes > 2 ? b->classes : 2;

	if (!cfg->classes && b->classes < m->defaults.classes)
		classes = m->defaults.classes;
	return dataset_memory_open(&e->data,
				   &(struct dataset_memory_opts){ .path = cfg->batch_from,
								  .images = b->images,
								  .labels = b->labels,
								  .dtype = b->dtype,
								  .n = b->n,
								  .height = b->height,
								  .width = b->width,
								  .channels = b->channels,
								  .classes = classes },
				   err);
}

static int open_random_images(struct engine *e, const struct model *m, struct err *err)
{
	const struct run_config *cfg = e->cfg;
	const struct model_config *d = &m->defaults;

	return dataset_synthetic_open(
		&e->data,
		&(struct dataset_synthetic_opts){ .height = cfg->image_size ? (int)cfg->image_size : d->image_h,
						  .width = cfg->image_size ? (int)cfg->image_size : d->image_w,
						  .channels = cfg->in_channels ? (int)cfg->in_channels : d->in_channels,
						  .classes = cfg->classes ? (int)cfg->classes : d->classes,
						  .seed = (uint64_t)cfg->seed },
		err);
}

static int64_t given_or(int64_t given, int64_t fallback)
{
	return given ? given : fallback;
}

static int64_t sample_length(const struct engine *e, const struct model *m)
{
	const struct run_config *cfg = e->cfg;

	return given_or(cfg->seq_len, given_or(cfg->block_size, m->defaults.context));
}

static int open_made_tokens(struct engine *e, const struct model *m, struct err *err)
{
	const struct run_config *cfg = e->cfg;
	const struct batch_file *b = e->job->batch;

	return dataset_tokens_open(&e->data,
				   &(struct dataset_tokens_opts){ .path = b ? cfg->batch_from : "--synthetic",
								  .tokens = b ? b->tokens : NULL,
								  .n = b ? b->n : 0,
								  .seq_len = b ? b->seq_len : sample_length(e, m),
								  .vocab = given_or(cfg->vocab_size, m->defaults.vocab),
								  .seed = (uint64_t)cfg->seed },
				   err);
}

static int open_folder(struct engine *e, const struct model *m, struct err *err)
{
	struct run_config *cfg = e->cfg;
	struct dataset_opts o = { .path = cfg->data_path,
				  .classes = (int)cfg->classes,
				  .seq_len = m->reads_tokens ? sample_length(e, m) : 0,
				  .image_size = (int)given_or(cfg->image_size, m->defaults.image_h),
				  .eval_resize = (int)cfg->eval_resize,
				  .squeeze = cfg->eval_transform == CONFIG_EVAL_RESIZE,
				  .val_share = cfg->val_split,
				  .tokenizer = cfg->tokenizer,
				  .strict = cfg->strict };
	char text[512];
	int rc;

	if (!(cfg->eval_transform & CONFIG_EVAL_RESIZE))
		return err_set(err, ERR_USAGE, "--eval-transform: resize, or resize,center-crop");
	rc = formats_open(&e->data, &o, err);
	if (rc)
		return rc;
	if (e->data->ops->hand_new && !config_given(cfg, FLAG_augment)) {
		cfg->augment = CONFIG_AUGMENT_RRC | CONFIG_AUGMENT_FLIP;
		cfg->origin[FLAG_augment] = ORIGIN_DERIVED;
	}
	if (cfg->augment & CONFIG_AUGMENT_RRC && !e->data->ops->hand_new)
		return err_set(err, ERR_USAGE, "--augment rrc is for folders of pictures; %.200s holds images of one size",
			       cfg->data_path);
	while (!engine_is_root(e) && dataset_notice(e->data, text, sizeof(text)))
		; /* rank 0 says what concerns the set as a whole */
	return 0;
}

static int check_kind(const struct model *m, bool tokens, const char *path, struct err *err)
{
	if (m->reads_tokens == tokens)
		return 0;
	return err_set(err, ERR_USAGE, "%.200s holds %s, but %s is a model of %s; choose another --model", path,
		       sample_kind_name(tokens ? SAMPLE_TOKENS : SAMPLE_IMAGE), m->name,
		       sample_kind_name(m->reads_tokens ? SAMPLE_TOKENS : SAMPLE_IMAGE));
}

int subject_open_data(struct engine *e, const struct model *m, struct err *err)
{
	const struct run_config *cfg = e->cfg;
	int rc = 0;

	if (cfg->command != COMMAND_BENCH && cfg->data_path)
		rc = open_folder(e, m, err);
	else if (e->job->batch)
		rc = check_kind(m, e->job->batch->tokens != NULL, cfg->batch_from, err);
	if (rc)
		return rc;
	if (e->data)
		return check_kind(m, e->data->kind == SAMPLE_TOKENS, cfg->data_path, err);
	if (m->reads_tokens)
		return open_made_tokens(e, m, err);
	return e->job->batch ? open_image_batch(e, m, err) : open_random_images(e, m, err);
}

/* Flags that say nothing to the other family are refused: silently ignored, they would mislead. A configuration file
 * may hold them: it holds every flag. */
static int refuse_foreign(const struct run_config *cfg, const struct model *m, struct err *err)
{
	static const enum flag_id words[] = { FLAG_n_layer,    FLAG_n_head,	FLAG_n_embd,
					      FLAG_block_size, FLAG_vocab_size, FLAG_tie_weights,
					      FLAG_dropout,    FLAG_seq_len,	FLAG_tokenizer };
	static const enum flag_id images[] = { FLAG_classes, FLAG_in_channels, FLAG_image_size,
					       FLAG_act,     FLAG_augment,     FLAG_label_smoothing,
					       FLAG_eval_transform, FLAG_eval_resize, FLAG_strict, FLAG_zero_init_residual };
	const enum flag_id *foreign = m->reads_tokens ? images : words;
	char label[300];
	size_t n = m->reads_tokens ? sizeof(images) / sizeof(*images) : sizeof(words) / sizeof(*words);

	for (size_t i = 0; i < n; i++)
		if (cfg->origin[foreign[i]] == ORIGIN_FLAG)
			return err_set(err, ERR_USAGE, "%s means nothing to %s, a model of %s; leave it away",
				       config_label(cfg, foreign[i], label, sizeof(label)), m->name,
				       sample_kind_name(m->reads_tokens ? SAMPLE_TOKENS : SAMPLE_IMAGE));
	return 0;
}

static int settle_images(struct engine *e, struct err *err)
{
	struct run_config *cfg = e->cfg;
	const struct dataset *d = e->data;
	char source[240];
	int rc;

	snprintf(source, sizeof(source), "the images of %.200s", d->path);
	rc = config_settle(cfg, FLAG_classes, d->classes, source, err);
	if (!rc)
		rc = config_settle(cfg, FLAG_in_channels, d->channels, source, err);
	if (!rc && d->height == d->width)
		rc = config_settle(cfg, FLAG_image_size, d->height, source, err);
	return rc;
}

/* Tokens that were made before keep the tokenizer that made them. */
static int check_tokenizer(const struct engine *e, struct err *err)
{
	struct tokenizer *t;
	bool same;
	int rc;

	if (!e->cfg->tokenizer || !e->data->tokenizer[0])
		return 0;
	rc = tokenizer_open(&t, e->cfg->tokenizer, err);
	if (rc)
		return rc;
	same = !strcmp(tokenizer_name(t), e->data->tokenizer);
	tokenizer_close(t);
	return same ? 0
		    : err_set(err, ERR_USAGE,
			      "--tokenizer %.200s: the tokens of %.200s were made with another one (%s)",
			      e->cfg->tokenizer, e->data->path, e->data->tokenizer);
}

static int settle_words(struct engine *e, const struct model *m, struct err *err)
{
	struct run_config *cfg = e->cfg;
	const struct model_config *d = &m->defaults;
	const struct {
		enum flag_id id;
		int64_t given, fallback;
	} sizes[] = { { FLAG_n_layer, cfg->n_layer, d->layers },
		      { FLAG_n_head, cfg->n_head, d->heads },
		      { FLAG_n_embd, cfg->n_embd, d->width },
		      { FLAG_block_size, cfg->block_size, d->context },
		      { FLAG_vocab_size, cfg->vocab_size, e->data->vocab } };
	char source[240];
	int rc;

	if (cfg->vocab_size && cfg->vocab_size < e->data->vocab)
		return err_set(err, ERR_USAGE, "--vocab-size %lld: the tokens of %.200s reach up to %lld",
			       (long long)cfg->vocab_size, e->data->path, (long long)e->data->vocab);
	snprintf(source, sizeof(source), "the tokens of %.200s", e->data->path);
	rc = config_settle(cfg, FLAG_seq_len, e->data->seq_len, source, err);
	for (size_t i = 0; !rc && i < sizeof(sizes) / sizeof(*sizes); i++)
		rc = config_settle(cfg, sizes[i].id, given_or(sizes[i].given, sizes[i].fallback), m->name, err);
	if (!rc && cfg->seq_len > cfg->block_size)
		return err_set(
			err, ERR_USAGE,
			"samples of %lld tokens are longer than the context of %lld; raise --block-size or lower "
			"--seq-len",
			(long long)cfg->seq_len, (long long)cfg->block_size);
	if (!rc)
		rc = check_tokenizer(e, err);
	if (cfg->origin[FLAG_tie_weights] == ORIGIN_DEFAULT) {
		cfg->tie_weights = d->tied;
		cfg->origin[FLAG_tie_weights] = ORIGIN_DERIVED;
	}
	return rc;
}

int subject_settle(struct engine *e, const struct model *m, struct err *err)
{
	int rc = refuse_foreign(e->cfg, m, err);

	if (rc)
		return rc;
	return m->reads_tokens ? settle_words(e, m, err) : settle_images(e, err);
}

struct model_config subject_config(const struct engine *e, const struct model *m)
{
	const struct run_config *cfg = e->cfg;
	struct model_config c = m->defaults;

	if (!m->reads_tokens) {
		c.classes = e->data->classes;
		c.in_channels = e->data->channels;
		c.image_h = e->data->height;
		c.image_w = e->data->width;
		c.act = cfg->act == CONFIG_ACT_GELU ? MODEL_GELU : MODEL_RELU;
		c.label_smoothing = cfg->label_smoothing;
		c.zero_init_residual = cfg->zero_init_residual;
		return c;
	}
	c.layers = cfg->n_layer;
	c.heads = cfg->n_head;
	c.width = cfg->n_embd;
	c.context = cfg->block_size;
	c.seq_len = cfg->seq_len;
	c.vocab = cfg->vocab_size;
	c.tied = cfg->tie_weights;
	c.dropout = cfg->dropout;
	c.keep_logits = cfg->save_outputs != NULL;
	return c;
}
