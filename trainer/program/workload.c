/* SPDX-License-Identifier: Apache-2.0 */
/* workload.c: opens model and data of a run. */
#include "trainer/program/workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/log.h"
#include "tracker/mem/mem.h"
#include "trainer/data/class_names.h"
#include "trainer/data/formats/formats.h"
#include "trainer/data/formats/synthetic.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/launch/machine.h"
#include "trainer/models/decoder.h"
#include "trainer/program/rank.h"

#define REASONS_SAID 4 /* why something is left out, in a line */

static const struct model *find_named_model(const char *name, struct err *err)
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

/* The workload that is being opened. */
struct workload_opening {
	struct workload *s;
	struct run_config *cfg;
	const struct batch_file *batch;
	struct peers *peers;
};

static int open_image_batch(struct workload_opening *o, struct err *err)
{
	const struct run_config *cfg = o->cfg;
	const struct model *m = o->s->model;
	const struct batch_file *b = o->batch;
	int classes = cfg->classes ? (int)cfg->classes : b->classes > 2 ? b->classes : 2;

	if (!cfg->classes && b->classes < m->defaults.classes)
		classes = m->defaults.classes;
	return dataset_memory_open(&o->s->data,
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

static int open_random_images(struct workload_opening *o, struct err *err)
{
	const struct run_config *cfg = o->cfg;
	const struct model_config *d = &o->s->model->defaults;

	return dataset_synthetic_open(
		&o->s->data,
		&(struct dataset_synthetic_opts){ .height = cfg->image_size ? (int)cfg->image_size : d->image_h,
						  .width = cfg->image_size ? (int)cfg->image_size : d->image_w,
						  .channels = cfg->in_channels ? (int)cfg->in_channels : d->in_channels,
						  .classes = cfg->classes ? (int)cfg->classes : d->classes,
						  .seed = (uint64_t)cfg->seed },
		err);
}

static int64_t value_or_default(int64_t given, int64_t fallback)
{
	return given ? given : fallback;
}

static int64_t sample_length(const struct run_config *cfg, const struct model *m)
{
	return value_or_default(cfg->seq_len, value_or_default(cfg->block_size, m->defaults.context));
}

static int open_token_batch(struct workload_opening *o, struct err *err)
{
	const struct run_config *cfg = o->cfg;
	const struct model *m = o->s->model;
	const struct batch_file *b = o->batch;

	return dataset_tokens_open(&o->s->data,
				   &(struct dataset_tokens_opts){ .path = b ? cfg->batch_from : "--synthetic",
								  .tokens = b ? b->tokens : NULL,
								  .n = b ? b->n : 0,
								  .seq_len = b ? b->seq_len : sample_length(cfg, m),
								  .vocab = value_or_default(cfg->vocab_size,
											    m->defaults.vocab),
								  .seed = (uint64_t)cfg->seed,
								  .planned = cfg->command == COMMAND_PLAN },
				   err);
}

/* Refuses a way of packing that a set, or the model, does not have. */
static int check_packing(const struct run_config *cfg, const struct dataset *d, struct err *err)
{
	const bool conversations = d->ops->say != NULL;

	if (!config_given(cfg, FLAG_pack))
		return 0;
	if (conversations && cfg->pack == CONFIG_PACK_STREAM)
		return err_set(err, ERR_USAGE,
			       "--pack stream: %.200s has conversations: give documents, or none for one a sample",
			       d->path);
	if (conversations && cfg->pack == CONFIG_PACK_DOCUMENTS && !cfg->decoder)
		return err_set(err, ERR_USAGE,
			       "--pack documents: attention of this model does not stop at a conversation: omit it, or "
			       "begin with a decoder (--init-from)");
	if (!conversations && cfg->pack == CONFIG_PACK_NONE)
		return err_set(err, ERR_USAGE, "--pack none: is for conversations: give stream or documents");
	return 0;
}

struct dataset_opts workload_data_opts(const struct run_config *cfg)
{
	return (struct dataset_opts){ .path = cfg->data_path,
				      .classes = (int)cfg->classes,
				      .seq_len = cfg->seq_len,
				      .image_size = (int)cfg->image_size,
				      .train_side = (int)cfg->train_crop_size,
				      .eval_resize = (int)cfg->eval_resize,
				      .squeeze = cfg->eval_transform == CONFIG_EVAL_RESIZE,
				      .val_share = cfg->val_split,
				      .tokenizer = cfg->tokenizer,
				      .text_field = config_given(cfg, FLAG_text_field) ? cfg->text_field : NULL,
				      .epoch_samples = cfg->epoch_samples,
				      .pack_documents = cfg->pack == CONFIG_PACK_DOCUMENTS,
				      .pack_conversations = cfg->pack == CONFIG_PACK_DOCUMENTS,
				      .chat_template = cfg->chat_template,
				      .train_on = cfg->train_on,
				      .long_samples = cfg->long_samples,
				      .allow_special = cfg->allow_special,
				      .template_date = cfg->template_date,
				      .fit_seq_len = !config_given(cfg, FLAG_seq_len) && !cfg->mix,
				      .seed = (uint64_t)cfg->seed,
				      .strict = cfg->strict,
				      .max_unreadable = cfg->max_unreadable,
				      .data_timeout_s = cfg->data_timeout,
				      .val_path = cfg->val_path,
				      .image_field = cfg->image_field,
				      .label_field = cfg->label_field };
}

/* Opens --data-path with the options of the flags, and checks flags that need each other. */
static int open_data_folder(struct workload_opening *opening, struct err *err)
{
	struct run_config *cfg = opening->cfg;
	const struct model *m = opening->s->model;
	struct dataset **data = &opening->s->data;
	struct dataset_opts o = workload_data_opts(cfg);
	uint32_t mix[MIX_PARTS_MAX];
	int rc = cfg->mix ? mix_parse(mix, &o.n_mix, "--mix", cfg->mix, err) : 0;

	if (rc)
		return rc;
	o.mix = cfg->mix ? mix : NULL;
	if (cfg->trained.class_names)
		o.classes = 0;
	o.seq_len = m->reads_tokens ? sample_length(cfg, m) : 0;
	o.image_size = (int)value_or_default(cfg->image_size, m->defaults.image_h);
	o.pack_conversations = cfg->decoder && (o.pack_conversations || !config_given(cfg, FLAG_pack));
	o.read_ahead = cfg->read_ahead > 0 ? (int)cfg->read_ahead : 0;
	o.parts = rank_parts(cfg);
	o.cache = cfg->cache;
	o.peers = opening->peers;
	o.planned = cfg->command == COMMAND_PLAN;
	o.memory_bytes = (uint64_t)machine_available_bytes();
	if (cfg->epoch_samples && !cfg->mix)
		return err_set(err, ERR_USAGE, "--epoch-samples: needs --mix");
	if (cfg->cache_size && !cfg->cache)
		return err_set(err, ERR_USAGE, "--cache-size: needs --cache DIR or --cache ram");
	if (cfg->cache_shared && !cfg->cache)
		return err_set(err, ERR_USAGE, "--cache-shared: needs --cache DIR or --cache ram");
	if (cfg->cache_size)
		rc = config_bytes(cfg, FLAG_cache_size, cfg->cache_size, &o.cache_bytes, err);
	if (rc)
		return rc;
	if (!(cfg->eval_transform & CONFIG_EVAL_RESIZE))
		return err_set(err, ERR_USAGE, "--eval-transform: expected resize or resize,center-crop");
	rc = formats_open(data, &o, err);
	if (rc)
		return rc;
	rc = check_packing(cfg, *data, err);
	if (rc)
		return rc;
	if ((*data)->ops->hand_new && !config_given(cfg, FLAG_augment)) {
		cfg->augment = CONFIG_AUGMENT_RRC | CONFIG_AUGMENT_FLIP;
		cfg->origin[FLAG_augment] = ORIGIN_DERIVED;
	}
	if (cfg->train_crop_size && !(*data)->ops->hand_new)
		return err_set(err, ERR_USAGE,
			       "--train-crop-size: %.200s has images of one size: use it with folders of images",
			       cfg->data_path);
	if (cfg->augment & CONFIG_AUGMENT_RRC && !(*data)->ops->hand_new)
		return err_set(err, ERR_USAGE,
			       "--augment rrc: %.200s has images of one size: use it with folders of images",
			       cfg->data_path);
	return 0;
}

static int check_kind(const struct model *m, bool tokens, const char *path, struct err *err)
{
	if (m->reads_tokens == tokens)
		return 0;
	return err_set(err, ERR_USAGE, "%.200s has %s, but %s is a model of %s: choose another --model", path,
		       sample_kind_name(tokens ? SAMPLE_TOKENS : SAMPLE_IMAGE), m->name,
		       sample_kind_name(m->reads_tokens ? SAMPLE_TOKENS : SAMPLE_IMAGE));
}

static int open_data(struct workload_opening *o, struct err *err)
{
	const struct run_config *cfg = o->cfg;
	const struct model *m = o->s->model;
	int rc = 0;

	if (cfg->data_path)
		rc = open_data_folder(o, err);
	else if (o->batch)
		rc = check_kind(m, o->batch->tokens != NULL, cfg->batch_from, err);
	if (rc)
		return rc;
	if (o->s->data)
		return check_kind(m, o->s->data->kind == SAMPLE_TOKENS, cfg->data_path, err);
	if (m->reads_tokens)
		return open_token_batch(o, err);
	return o->batch ? open_image_batch(o, err) : open_random_images(o, err);
}

static int check_amount(struct run_config *cfg, const struct dataset *d, struct err *err)
{
	int rc = 0;

	if (cfg->ra_sampler && (d->endless || d->part))
		return err_set(err, ERR_USAGE, "--ra-sampler: %s has no epochs of its own: omit it", d->path);
	if (!d->endless && !cfg->test_only)
		rc = config_fit_batch(cfg, d->n_samples[SPLIT_TRAIN], d->path, err);
	if (rc)
		return rc;
	if (cfg->eval_steps && !d->n_samples[SPLIT_VAL] && !cfg->test_only)
		return err_set(err, ERR_USAGE, "--eval-steps: %s has no samples to evaluate", d->path);
	if (cfg->test_only && !d->n_samples[SPLIT_VAL])
		return err_set(err, ERR_USAGE, "--test-only: %s has no samples to evaluate", d->path);
	return 0;
}

/* Refuses flags of the other model family, since ignoring them would mislead. A configuration file may have them: it
 * has every flag. */
static int refuse_other_family(const struct run_config *cfg, const struct model *m, struct err *err)
{
	static const enum flag_id words[] = { FLAG_n_layer,	  FLAG_n_head,	      FLAG_n_embd,
					      FLAG_block_size,	  FLAG_vocab_size,    FLAG_tie_weights,
					      FLAG_dropout,	  FLAG_seq_len,	      FLAG_tokenizer,
					      FLAG_pack,	  FLAG_mix,	      FLAG_text_field,
					      FLAG_train_on,	  FLAG_chat_template, FLAG_long_samples,
					      FLAG_allow_special, FLAG_template_date };
	static const enum flag_id images[] = {
		FLAG_classes,	      FLAG_in_channels,	   FLAG_image_size,  FLAG_act,	  FLAG_augment,
		FLAG_label_smoothing, FLAG_eval_transform, FLAG_eval_resize, FLAG_zero_init_residual,
		FLAG_auto_augment,    FLAG_random_erase,   FLAG_mixup_alpha,  FLAG_cutmix_alpha,
		FLAG_ra_sampler,      FLAG_ra_reps,	   FLAG_train_crop_size
	};
	const enum flag_id *foreign = m->reads_tokens ? images : words;
	char label[300];
	size_t n = m->reads_tokens ? sizeof(images) / sizeof(*images) : sizeof(words) / sizeof(*words);

	for (size_t i = 0; i < n; i++)
		if (cfg->origin[foreign[i]] == ORIGIN_FLAG)
			return err_set(err, ERR_USAGE, "%s: not a flag of %s, a model of %s: omit it",
				       config_label(cfg, foreign[i], label, sizeof(label)), m->name,
				       sample_kind_name(m->reads_tokens ? SAMPLE_TOKENS : SAMPLE_IMAGE));
	return 0;
}

/* Gives labels the meaning that they have in the weights that are evaluated, and refuses images of another size. */
static int follow_trained(const struct run_config *cfg, struct dataset *d, struct err *err)
{
	const struct class_names_trained w = { cfg->trained.path, cfg->trained.class_names, (int)cfg->trained.classes };
	const bool sized = cfg->trained.path && cfg->origin[FLAG_image_size] == ORIGIN_DERIVED;

	if (sized && (d->height != cfg->image_size || d->width != cfg->image_size))
		return err_set(err, ERR_USAGE, "%.200s has images of %dx%d, but %.200s was trained on %lldx%lld: add "
					       "--image-size %d to evaluate nevertheless",
			       d->path, d->height, d->width, cfg->trained.path, (long long)cfg->image_size,
			       (long long)cfg->image_size, d->height);
	return cfg->trained.path ? class_names_match(d, &w, err) : 0;
}

static int settle_image_flags(struct run_config *cfg, const struct dataset *d, struct err *err)
{
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

/* Tokens on disk keep the tokenizer that made them; weights know tokens of one tokenizer. */
static int check_tokenizer(const struct run_config *cfg, const struct dataset *d, struct err *err)
{
	const char *trained = cfg->trained.tokenizer;
	struct tokenizer *t;
	bool same;
	int rc;

	if (trained && d->tokenizer[0] && strcmp(trained, d->tokenizer))
		return err_set(err, ERR_USAGE,
			       "%.200s: the tokens of %.200s were made with another tokenizer (%s) than those of "
			       "training (%s): use that --tokenizer",
			       cfg->trained.path, d->path, d->tokenizer, trained);
	if (cfg->decoder && cfg->init_from && !cfg->tokenizer && !trained && !strcmp(d->tokenizer, "bytes"))
		return err_set(
			err, ERR_USAGE,
			"%.200s: has no tokenizer.json to make tokens of %.200s with: copy the model's there, or give "
			"--tokenizer",
			cfg->decoder->folder, d->path);
	if (!cfg->tokenizer || !d->tokenizer[0])
		return 0;
	rc = tokenizer_open(&t, cfg->tokenizer, err);
	if (rc)
		return rc;
	same = !strcmp(tokenizer_name(t), d->tokenizer);
	tokenizer_close(t);
	return same ? 0
		    : err_set(err, ERR_USAGE,
			      "--tokenizer %.200s: the tokens of %.200s were made with another one (%s)",
			      cfg->tokenizer, d->path, d->tokenizer);
}

/* Sets the flags of a token model that were not given, from the data and the model's defaults. */
static int settle_token_flags(struct run_config *cfg, const struct workload *s, struct err *err)
{
	const struct model_config *d = &s->model->defaults;
	const struct dataset *data = s->data;
	const struct {
		enum flag_id id;
		int64_t given, fallback;
	} sizes[] = { { FLAG_n_layer, cfg->n_layer, d->layers },
		      { FLAG_n_head, cfg->n_head, d->heads },
		      { FLAG_n_embd, cfg->n_embd, d->width },
		      { FLAG_block_size, cfg->block_size, d->context },
		      { FLAG_vocab_size, cfg->vocab_size, data->vocab } };
	char source[240];
	int rc = check_tokenizer(cfg, data, err);

	if (rc)
		return rc;
	if (cfg->decoder && cfg->vocab_size < data->vocab)
		return err_set(err, ERR_USAGE,
			       "config.json: vocab_size %lld: %.200s has tokens up to %lld: make them with the "
			       "tokenizer of that model",
			       (long long)cfg->vocab_size, data->path, (long long)data->vocab - 1);
	if (cfg->vocab_size && cfg->vocab_size < data->vocab)
		return err_set(err, ERR_USAGE, "--vocab-size %lld: expected at least the vocabulary of %.200s, %lld",
			       (long long)cfg->vocab_size, data->path, (long long)data->vocab);
	snprintf(source, sizeof(source), "the tokens of %.200s", data->path);
	rc = config_settle(cfg, FLAG_seq_len, data->seq_len, source, err);
	for (size_t i = 0; !rc && i < sizeof(sizes) / sizeof(*sizes); i++)
		rc = config_settle(cfg, sizes[i].id, value_or_default(sizes[i].given, sizes[i].fallback),
				   s->model->name, err);
	if (!rc && cfg->decoder && cfg->seq_len > cfg->block_size)
		return err_set(err, ERR_USAGE,
			       "config.json: max_position_embeddings %lld is shorter than samples of %lld tokens: give "
			       "--seq-len %lld or less",
			       (long long)cfg->block_size, (long long)cfg->seq_len, (long long)cfg->block_size);
	if (!rc && cfg->seq_len > cfg->block_size)
		return err_set(
			err, ERR_USAGE,
			"samples of %lld tokens are longer than the context of %lld; raise --block-size or lower "
			"--seq-len",
			(long long)cfg->seq_len, (long long)cfg->block_size);
	if (cfg->origin[FLAG_tie_weights] == ORIGIN_DEFAULT) {
		cfg->tie_weights = d->tied;
		cfg->origin[FLAG_tie_weights] = ORIGIN_DERIVED;
	}
	return rc;
}

/* The ranks of this machine may keep half of the free memory. */
static void set_window_limits(const struct run_config *cfg, struct dataset *d)
{
	const int parts = rank_parts(cfg);
	const int64_t lanes = cfg->global_batch_size < WINDOW_LANES ? cfg->global_batch_size : WINDOW_LANES;

	d->ops->hold(d, &(struct dataset_windows){ .window = cfg->shuffle_window,
						   .samples = cfg->shuffle_window / parts,
						   .places = (int)(lanes / parts) + 1,
						   .memory_bytes = (uint64_t)machine_available_bytes() / 2 /
								   (uint64_t)cfg->local_world });
}

static int settle_config(struct run_config *cfg, const struct workload *s, struct err *err)
{
	int rc = refuse_other_family(cfg, s->model, err);

	if (rc)
		return rc;
	if (s->data->part && config_given(cfg, FLAG_shuffle))
		return err_set(err, ERR_USAGE, "--shuffle: a mix defines its own order: omit it");
	if (cfg->origin[FLAG_shuffle] == ORIGIN_DEFAULT) {
		cfg->shuffle = s->data->far ? CONFIG_SHUFFLE_WINDOW : CONFIG_SHUFFLE_GLOBAL;
		cfg->origin[FLAG_shuffle] = ORIGIN_DERIVED;
	}
	if (cfg->shuffle == CONFIG_SHUFFLE_WINDOW && s->data->ops->hold)
		set_window_limits(cfg, s->data);
	return s->model->reads_tokens ? settle_token_flags(cfg, s, err) : settle_image_flags(cfg, s->data, err);
}

/* Makes the model's configuration from the flags, which are final, and the data. */
static struct model_config make_model_config(const struct run_config *cfg, const struct workload *s)
{
	struct model_config c = s->model->defaults;

	if (!s->model->reads_tokens) {
		c.classes = s->data->classes;
		c.in_channels = s->data->channels;
		c.image_h = s->data->height;
		c.image_w = s->data->width;
		c.train_h = c.train_w = s->data->train_side;
		c.act = cfg->act == CONFIG_ACT_GELU ? MODEL_GELU : MODEL_RELU;
		c.label_smoothing = cfg->label_smoothing;
		c.label_pairs = cfg->mixup_alpha > 0 || cfg->cutmix_alpha > 0;
		c.zero_init_residual = cfg->zero_init_residual;
		return c;
	}
	if (cfg->decoder)
		c.decoder = cfg->decoder;
	c.documents = cfg->decoder && s->data->documents;
	c.layers = cfg->n_layer;
	c.heads = cfg->n_head;
	c.width = cfg->n_embd;
	c.context = cfg->block_size;
	c.seq_len = cfg->seq_len;
	c.vocab = cfg->vocab_size;
	c.tied = cfg->tie_weights;
	c.dropout = cfg->dropout;
	c.keep_logits = cfg->save_outputs != NULL;
	c.keep_best = cfg->decoder && s->data->ops == &dataset_chat;
	return c;
}

static int name_classes(struct workload *s, const struct run_config *cfg, struct err *err)
{
	if (cfg->trained.class_names)
		s->class_names = mem_strdup(cfg->trained.class_names);
	else if (s->data->n_class_names)
		s->class_names = class_names_text(s->data);
	else
		return 0;
	return s->class_names ? 0 : err_nomem(err, "names of classes");
}

int workload_open(struct workload *ret, struct run_config *cfg, const struct batch_file *batch, struct peers *peers,
		  struct err *err)
{
	struct workload s = { .model = find_named_model(cfg->model, err) };
	struct workload_opening o = { &s, cfg, batch, peers };
	int rc = s.model ? open_data(&o, err) : err->code;

	if (!rc)
		rc = check_amount(cfg, s.data, err);
	if (!rc && s.data->kind == SAMPLE_IMAGE)
		rc = follow_trained(cfg, s.data, err);
	if (!rc)
		rc = settle_config(cfg, &s, err);
	if (!rc)
		rc = name_classes(&s, cfg, err);
	if (rc) {
		workload_close(&s);
		return rc;
	}
	s.norm = dataset_norm(s.data);
	snprintf(s.identity, sizeof(s.identity), "%s", s.data->hash);
	s.config = make_model_config(cfg, &s);
	*ret = s;
	return 0;
}

void workload_close(struct workload *s)
{
	dataset_close(s->data);
	free(s->class_names);
	s->data = NULL;
	s->class_names = NULL;
}

static void log_warning(void *user, bool warns, const char *text)
{
	(void)user;
	if (warns)
		log_warn("%s", text);
}

void workload_warn(struct dataset *d)
{
	dataset_tell(d, REASONS_SAID, log_warning, NULL);
}

int workload_identify(struct workload *s, const struct run_config *cfg, struct err *err)
{
	const struct dataset *d = s->data;
	struct sha256 sum;
	char hex[65];
	int rc = 0;

	if (d->endless)
		return 0;
	sha256_init(&sum);
	for (int i = 0; !rc && i < SPLIT_COUNT; i++) {
		rc = dataset_digest(d, (enum split)i, cfg->hash_content, s->digest[i], err);
		sha256_add(&sum, s->digest[i], strlen(s->digest[i]));
	}
	if (s->class_names)
		sha256_add(&sum, s->class_names, strlen(s->class_names));
	sha256_end(&sum, hex);
	if (d->ops->sum || cfg->hash_content)
		snprintf(s->identity, sizeof(s->identity), "%.20s-%.40s", d->ops->name, hex);
	return rc;
}

bool workload_reads_words(const struct workload *s)
{
	return s->model->reads_tokens;
}
