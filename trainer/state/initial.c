/* SPDX-License-Identifier: Apache-2.0 */
/* initial.c: first values: drawn piece by piece on the host, or loaded (--init-from, --reset-head); --freeze. */
#include "trainer/state/initial.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/file.h"
#include "trainer/ops/cast/float16.h"
#include "trainer/state/tensor_files.h"
#include "trainer/weights/decoder_file.h"
#include "trainer/weights/checkpoint.h"

#define TUNING_SEQ_LEN 2048 /* tokens of a sample, at most, if --seq-len does not say */

/* ---- drawn values ---- */

#define PIECE 4096 /* elements */

static double initial_value(const struct init *init, struct rng_key key, int64_t i)
{
	switch (init->kind) {
	case INIT_ONE:
		return 1;
	case INIT_NORMAL:
		return init->scale * rng_normal(key, (uint64_t)i);
	case INIT_UNIFORM:
		return init->scale * (2 * rng_uniform(key, (uint64_t)i) - 1);
	default:
		return 0;
	}
}

static void fill_f64(double *to, int64_t n, const struct init *init, struct rng_key key, int64_t first)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = initial_value(init, key, first + i);
}

static void fill_f32(float *to, int64_t n, const struct init *init, struct rng_key key, int64_t first)
{
	if (init->kind == INIT_NORMAL) {
		normal_fill(to, n, key, (uint64_t)first, init->scale);
		return;
	}
	for (int64_t i = 0; i < n; i++)
		to[i] = (float)initial_value(init, key, first + i);
}

/* Draws the part of a tensor that this rank owns. */
static int draw_tensor(const struct tensors *s, const struct tensor *t, uint64_t seed, struct err *err)
{
	const struct strategy_part held = tensors_held(s, t, s->comm->rank);
	struct rng_key key = { seed, rng_stream(t->name) };
	union {
		double f64[PIECE];
		float f32[PIECE];
		uint16_t f16[PIECE];
	} piece;
	int rc = 0;

	if (t->init.kind == INIT_ZERO)
		return 0;
	if (t->dtype != DTYPE_F64 && t->dtype != DTYPE_F32 && t->dtype != DTYPE_F16)
		return err_set(err, ERR_UNSUPPORTED, "%s: no initial values of type %s", t->name, dtype_name(t->dtype));
	for (int64_t at = held.begin; !rc && at < held.end; at += PIECE) {
		int64_t n = held.end - at < PIECE ? held.end - at : PIECE;

		if (t->dtype == DTYPE_F64)
			fill_f64(piece.f64, n, &t->init, key, at);
		else
			fill_f32(piece.f32, n, &t->init, key, at);
		for (int64_t i = 0; t->dtype == DTYPE_F16 && i < n; i++) /* each is narrower than what it overwrites */
			piece.f16[i] = f16_from_float(piece.f32[i]);
		rc = tensors_put(s, t, (struct strategy_part){ at, at + n }, &piece, err);
	}
	return rc;
}

int draw_values(const struct tensors *s, const struct run_config *cfg, const struct model *m, struct err *err)
{
	int at = 0;
	const struct tensor *t;
	int rc = 0;

	while (!rc && (t = prepared_next(s->prepared, &at)))
		if (!initial_gives(cfg, m, t))
			rc = draw_tensor(s, t, (uint64_t)cfg->seed, err);
	return rc;
}

/* ---- the file of --init-from ---- */

static bool is_weights_file(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode);
}

/* Returns the path of the newest checkpoint's weights, or adapter, below a run's folder; NULL: none. */
static const char *newest_weights(struct run_config *cfg)
{
	char *folder = arena_printf(cfg->arena, "%s/checkpoints", cfg->init_from), path[4200], file[4200];
	struct checkpoint_entry *list = NULL;
	const char *found = NULL;
	size_t n = 0;

	if (checkpoint_list(&list, &n, folder, NULL))
		return NULL;
	for (size_t i = 0; !found && i < n; i++)
		if (list[i].segment >= 0 && !checkpoint_path(path, sizeof(path), folder, list[i].step, NULL) &&
		    !checkpoint_model_path(file, sizeof(file), path, NULL))
			found = arena_strdup(cfg->arena, file);
	free(list);
	return found;
}

/* Verifies the weights or the adapter found in a checkpoint's folder; a file that the user named is not verified. */
static int verify_found(const char *path, struct err *err)
{
	const char *slash = strrchr(path, '/');
	char folder[4200];

	if (!strcmp(slash + 1, ADAPTER_MODEL))
		snprintf(folder, sizeof(folder), "%.*s/..", (int)(slash - path), path);
	else if (!strcmp(slash + 1, CHECKPOINT_MODEL))
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
	else
		return 0;
	return checkpoint_verify_model(folder, err);
}

int initial_locate(struct run_config *cfg, struct err *err)
{
	static const char *const names[] = { CHECKPOINT_MODEL, "model" SAFETENSORS_INDEX, "weights.safetensors",
					     CHECKPOINT_ADAPTER, ADAPTER_MODEL };
	const char *found = NULL;
	struct stat st;

	if (!cfg->init_from)
		return 0;
	if (stat(cfg->init_from, &st))
		return err_set(err, ERR_USAGE, "--init-from %.300s: %s", cfg->init_from, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return 0;
	for (size_t i = 0; !found && i < sizeof(names) / sizeof(names[0]); i++) {
		char *path = arena_printf(cfg->arena, "%s/%s", cfg->init_from, names[i]);

		found = is_weights_file(path) ? path : NULL;
	}
	if (!found)
		found = newest_weights(cfg);
	if (!found)
		return err_set(err, ERR_USAGE,
			       "--init-from %.300s: no " CHECKPOINT_MODEL " or checkpoint in that folder",
			       cfg->init_from);
	cfg->init_from = found;
	return verify_found(found, err);
}

/* Flags that a file's metadata may set; the last ones for an evaluation alone: training may use another size. */
static const enum flag_id in_metadata[] = { FLAG_model,	     FLAG_act,	      FLAG_n_layer,    FLAG_n_head,
					    FLAG_n_embd,     FLAG_block_size, FLAG_vocab_size, FLAG_tie_weights,
					    FLAG_image_size, FLAG_eval_resize, FLAG_eval_transform, FLAG_seq_len };
#define IN_METADATA (sizeof(in_metadata) / sizeof(in_metadata[0]))
#define IN_METADATA_ALWAYS (IN_METADATA - 4)

struct settling {
	const struct safetensors *file;
	struct run_config *cfg;
	const char *path;
	struct err *err;
	int rc;
};

/* Returns the text that the flag is set from; NULL: none. */
static const char *metadata_value(const struct settling *t, const struct config_item *item, char side[16])
{
	const char *value = safetensors_meta(t->file, item->id == FLAG_n_head ? "heads" : item->name);
	int height, width;

	if (!value || item->id != FLAG_image_size)
		return value;
	if (sscanf(value, "%dx%d", &height, &width) != 2 || height != width)
		return NULL;
	snprintf(side, 16, "%d", height);
	return side;
}

static void settle_from_metadata(void *user, const struct config_item *item)
{
	struct settling *t = user;
	char label[400], side[16];
	const char *value = metadata_value(t, item, side);
	bool has = false;

	for (size_t i = 0; i < (t->cfg->test_only ? IN_METADATA : IN_METADATA_ALWAYS); i++)
		has |= in_metadata[i] == item->id;
	if (t->rc || !has || !value || config_given(t->cfg, item->id))
		return;
	snprintf(label, sizeof(label), "%.300s: %s", t->path, item->name);
	t->rc = config_put(t->cfg, item->id, label, value, t->err);
}

/* Returns the model of these sizes; without one a GPT whose sizes all come from flags. */
static const char *name_gpt(const struct hf_config *c)
{
	for (int i = 0; i < MODEL_COUNT; i++) {
		const struct model_config *d = &models_table[i]->defaults;

		if (models_table[i]->reads_tokens && !d->decoder && d->layers == c->layers && d->heads == c->heads &&
		    d->width == c->width)
			return models_table[i]->name;
	}
	return model_gpt2_124m.name;
}

/* Reads the config.json next to the weights into cfg->decoder, if it is that of a decoder. Returns 1 if it is, 0, or a
 * negative code. */
static int read_decoder_json(struct run_config *cfg, const char *path, struct err *err)
{
	const char *slash = strrchr(path, '/');
	char *json = arena_printf(cfg->arena, "%.*sconfig.json", slash ? (int)(slash - path) + 1 : 0, path);

	return cfg->decoder ? 1 : decoder_file_read(&cfg->decoder, json, cfg->arena, err);
}

/* ---- LoRA ---- */

/* If --init-from led to an adapter, makes it that of --adapter. Then reads the adapter's terms, and its weights if
 * --init-from does not say. */
static int open_adapter(struct run_config *cfg, struct adapter_terms *ret, struct err *err)
{
	const char *slash = cfg->init_from ? strrchr(cfg->init_from, '/') : NULL, *base;
	int rc = 0;

	if (slash && !strcmp(slash + 1, ADAPTER_MODEL)) {
		rc = cfg->adapter ? err_set(err, ERR_USAGE,
					    "--init-from %.300s: is an adapter, as --adapter: give the "
					    "weights that it belongs to",
					    cfg->init_from)
				  : config_put(cfg, FLAG_adapter, "--init-from",
					       arena_printf(cfg->arena, "%.*s", (int)(slash - cfg->init_from),
							    cfg->init_from),
					       err);
		cfg->init_from = NULL;
	}
	if (rc || !cfg->adapter)
		return rc;
	rc = adapter_read(ret, &base, cfg->adapter, cfg->arena, err);
	if (rc || cfg->init_from)
		return rc;
	if (access(base, F_OK))
		return err_set(err, ERR_USAGE,
			       "%.300s: its weights are not at '%.300s': give their folder, --init-from FOLDER "
			       "--adapter %.300s",
			       cfg->adapter, base, cfg->adapter);
	cfg->init_from = base;
	return initial_locate(cfg, err);
}

/* Sets the flags that were not given from the adapter; those that were must agree. */
static int settle_terms(struct run_config *cfg, const struct adapter_terms *t, struct decoder_lora *l, struct err *err)
{
	static const enum flag_id ids[] = { FLAG_lora, FLAG_lora_targets, FLAG_rslora };
	bool given[3];
	struct decoder_lora own;
	int rc;

	for (int i = 0; i < 3; i++) {
		given[i] = config_given(cfg, ids[i]);
		if (!given[i])
			cfg->origin[ids[i]] = ORIGIN_DERIVED;
	}
	cfg->lora = given[0] ? cfg->lora : t->lora;
	cfg->lora_targets = given[1] ? cfg->lora_targets : t->targets;
	cfg->rslora = given[2] ? cfg->rslora : t->rooted;
	rc = adapter_parse(l, &(struct adapter_terms){ cfg->lora, cfg->lora_targets, cfg->rslora }, cfg->decoder->class,
			   err);
	if (!rc)
		rc = adapter_parse(&own, t, cfg->decoder->class, err);
	if (!rc &&
	    (own.rank != l->rank || own.alpha != l->alpha || own.rooted != l->rooted || own.targets != l->targets))
		rc = err_set(err, ERR_USAGE,
			     "--lora, --lora-targets, --rslora contradict %.300s, which has --lora %s "
			     "--lora-targets %s%s: omit them",
			     cfg->adapter, t->lora, t->targets, t->rooted ? " --rslora" : "");
	return rc;
}

/* Gives cfg->decoder the adapter, and freezes the rest. t: of --adapter. */
static int begin_lora(struct run_config *cfg, const struct adapter_terms *t, struct err *err)
{
	static const enum flag_id others[] = { FLAG_freeze, FLAG_model_ema, FLAG_reset_head };
	struct decoder_config *d;
	char label[300];
	int rc;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (config_given(cfg, others[i]))
			return err_set(err, ERR_USAGE, "--lora: trains an adapter alone: omit %s",
				       config_label(cfg, others[i], label, sizeof(label)));
	if (!cfg->decoder)
		return err_set(err, ERR_USAGE,
			       "--lora, --adapter: need --init-from with the folder of a decoder, as of "
			       "Qwen, Llama or Gemma");
	d = arena_alloc(cfg->arena, sizeof(*d));
	*d = *cfg->decoder;
	rc = cfg->adapter
		     ? settle_terms(cfg, t, &d->lora, err)
		     : adapter_parse(&d->lora, &(struct adapter_terms){ cfg->lora, cfg->lora_targets, cfg->rslora },
				     d->class, err);
	cfg->decoder = d;
	return rc ? rc : config_put(cfg, FLAG_freeze, "--lora", "*,!" DECODER_ADAPTER "*", err);
}

/* The tokenizer in the folder of a decoder makes tokens of texts, if --tokenizer does not say. */
static int take_tokenizer(struct run_config *cfg, struct err *err)
{
	const char *folder = cfg->decoder->folder;

	if (config_given(cfg, FLAG_tokenizer) || !(cfg->data_path || cfg->command == COMMAND_SAMPLE) ||
	    access(arena_printf(cfg->arena, "%s/tokenizer.json", folder), F_OK))
		return 0;
	return config_put(cfg, FLAG_tokenizer, "--init-from", folder, err);
}

int initial_begin(struct run_config *cfg, struct err *err)
{
	struct adapter_terms terms = { .lora = NULL };
	const struct decoder_config *d;
	char text[32];
	int rc = initial_locate(cfg, err);

	if (!rc)
		rc = open_adapter(cfg, &terms, err);
	if (!rc && cfg->init_from)
		rc = read_decoder_json(cfg, cfg->init_from, err);
	if (rc < 0)
		return rc;
	rc = cfg->lora || cfg->adapter ? begin_lora(cfg, &terms, err)
	     : config_given(cfg, FLAG_lora_targets) || config_given(cfg, FLAG_rslora)
		     ? err_set(err, ERR_USAGE, "--lora-targets, --rslora: need --lora R")
		     : 0;
	if (rc || !cfg->decoder)
		return rc;
	rc = take_tokenizer(cfg, err);
	if (rc || cfg->command == COMMAND_SAMPLE || cfg->command == COMMAND_MERGE || cfg->command == COMMAND_EXPORT ||
	    cfg->batch_from || config_given(cfg, FLAG_seq_len))
		return rc;
	d = cfg->decoder;
	snprintf(text, sizeof(text), "%lld", (long long)(d->context < TUNING_SEQ_LEN ? d->context : TUNING_SEQ_LEN));
	return config_put(cfg, FLAG_seq_len, "--init-from", text, err);
}

/* Reads the config.json next to the weights: of a decoder into cfg->decoder, the sizes into *ret. Returns 1, 0 without
 * such a file, or a negative code. */
static int read_config_json(struct run_config *cfg, const char *path, struct hf_config *ret, struct err *err)
{
	const struct decoder_config *d;
	int rc = read_decoder_json(cfg, path, err);

	if (rc < 0)
		return rc;
	if (!rc)
		return hf_config_read(ret, path, err);
	d = cfg->decoder;
	*ret = (struct hf_config){ .layers = d->layers,
				   .heads = d->heads,
				   .width = d->width,
				   .context = d->context,
				   .vocab = d->vocab,
				   .tied = d->tied };
	return 1;
}

/* Takes the model and the sizes of a language model from the config.json next to weights of other programs, which have
 * no metadata of ours. */
static int settle_from_config_json(struct run_config *cfg, const char *path, struct err *err)
{
	char source[400], label[300];
	struct hf_config c;
	int rc = read_config_json(cfg, path, &c, err);

	if (rc <= 0)
		return rc;
	snprintf(source, sizeof(source), "the config.json of %.300s", path);
	if (cfg->decoder && config_given(cfg, FLAG_model) && strcmp(cfg->model, model_decoder.name))
		return err_set(err, ERR_USAGE, "--model %.60s contradicts %s, which describes a %s: omit it",
			       cfg->model, source, cfg->decoder->class->architecture);
	const struct {
		enum flag_id id;
		int64_t value;
	} sizes[] = { { FLAG_n_layer, c.layers }, { FLAG_n_head, c.heads }, { FLAG_n_embd, c.width },
		      { FLAG_block_size, c.context }, { FLAG_vocab_size, c.vocab } };

	rc = config_given(cfg, FLAG_model)
		     ? 0
		     : config_put(cfg, FLAG_model, source, cfg->decoder ? model_decoder.name : name_gpt(&c), err);
	for (size_t i = 0; !rc && i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (sizes[i].value > 0)
			rc = config_settle(cfg, sizes[i].id, sizes[i].value, source, err);
	if (!rc && config_given(cfg, FLAG_tie_weights) && cfg->tie_weights != c.tied && !cfg->reset_head)
		return err_set(err, ERR_USAGE, "%s %s contradicts %s, whose weights are %s",
			       config_label(cfg, FLAG_tie_weights, label, sizeof(label)),
			       cfg->tie_weights ? "yes" : "no", source, c.tied ? "tied" : "not tied");
	if (!rc && !config_given(cfg, FLAG_tie_weights))
		rc = config_put(cfg, FLAG_tie_weights, source, c.tied ? "yes" : "no", err);
	return rc;
}

/* Notes what an evaluation must know of the data that the model was trained on. */
static void note_trained(const struct settling *t)
{
	const char *names = safetensors_meta(t->file, "class_names");
	const char *tokenizer = safetensors_meta(t->file, "tokenizer");
	const char *classes = safetensors_meta(t->file, "classes");
	struct run_config *cfg = t->cfg;

	cfg->trained = (struct config_trained){ .path = arena_strdup(cfg->arena, t->path),
						.class_names = names ? arena_strdup(cfg->arena, names) : NULL,
						.tokenizer = tokenizer ? arena_strdup(cfg->arena, tokenizer) : NULL,
						.classes = classes ? strtoll(classes, NULL, 10) : 0 };
}

int initial_settle(struct run_config *cfg, struct err *err)
{
	struct settling t = { .cfg = cfg, .err = err };
	struct safetensors *s;
	int rc = initial_locate(cfg, err);

	t.path = cfg->init_from ? cfg->init_from : cfg->trained.path; /* resume_settle names a checkpoint's weights */
	if (rc || !t.path)
		return rc;
	cfg->trained.path = NULL;
	rc = safetensors_open(&s, t.path, cfg->init_from ? err : NULL);
	if (rc)
		return cfg->init_from ? rc : 0; /* resume_open may find another checkpoint */
	t.file = s;
	config_each(cfg, settle_from_metadata, &t);
	rc = t.rc;
	if (!rc && cfg->test_only)
		note_trained(&t);
	if (!rc && (!safetensors_meta(s, "model") || !strcmp(safetensors_meta(s, "model"), model_decoder.name)))
		rc = settle_from_config_json(cfg, t.path, err);
	if (!rc && cfg->origin[FLAG_model] == ORIGIN_DEFAULT)
		rc = err_set(err, ERR_USAGE, "%.300s has no model name in its metadata: add --model NAME", t.path);
	safetensors_close(s);
	return rc;
}

/* Reads "0.5,0.25": one finite number for each channel. */
static bool read_channels(const char *text, int n, double *ret)
{
	char *end;

	for (int i = 0; i < n; i++) {
		ret[i] = strtod(text, &end);
		if (end == text || !isfinite(ret[i]) || *end != (i + 1 < n ? ',' : '\0'))
			return false;
		text = end + 1;
	}
	return true;
}

struct channel_flag { /* value of --mean or --std, for the images of d */
	const struct run_config *cfg;
	const struct dataset *d;
	enum flag_id id;
	const char *text;
};

static int read_given(const struct channel_flag *g, double *to, struct err *err)
{
	const struct dataset *d = g->d;
	double v[DATASET_CHANNELS_MAX];
	char label[300];
	bool fine = read_channels(g->text, d->channels, v);

	for (int i = 0; fine && g->id == FLAG_std && i < d->channels; i++)
		fine = v[i] > 0;
	if (!fine)
		return err_set(err, ERR_USAGE,
			       "%s '%.100s': expected %d comma-separated %snumber%s, one for each channel of %.200s",
			       config_label(g->cfg, g->id, label, sizeof(label)), g->text, d->channels,
			       g->id == FLAG_std ? "positive " : "", d->channels > 1 ? "s" : "", d->path);
	memcpy(to, v, (size_t)d->channels * sizeof(*to));
	return 0;
}

int initial_given(struct workload *s, const struct run_config *cfg, struct err *err)
{
	const struct dataset *d = s->data;
	int rc = 0;

	if (!cfg->mean && !cfg->std)
		return 0;
	if (d->kind != SAMPLE_IMAGE || d->dtype != DTYPE_U8)
		return err_set(err, ERR_USAGE, "--mean, --std: %.200s is not normalised", d->path);
	if (cfg->mean)
		rc = read_given(&(struct channel_flag){ cfg, d, FLAG_mean, cfg->mean }, s->norm.mean, err);
	if (!rc && cfg->std)
		rc = read_given(&(struct channel_flag){ cfg, d, FLAG_std, cfg->std }, s->norm.std, err);
	return rc;
}

/* Takes mean and std from the texts of a file's metadata. */
static int take_file_norm(struct workload *s, const char *path, const char *mean, const char *std, struct err *err)
{
	const int channels = s->data->channels;
	struct dataset_norm norm = s->norm;
	bool fine = read_channels(mean, channels, norm.mean) && read_channels(std, channels, norm.std);

	for (int i = 0; fine && i < channels; i++)
		fine = norm.std[i] > 0;
	if (!fine)
		return err_set(err, ERR_USAGE,
			       "%.300s: its mean and std are not %d numbers each, one for each channel of %.100s", path,
			       channels, s->data->path);
	s->norm = norm;
	return 0;
}

int initial_normalize(struct workload *s, const struct run_config *cfg, const char *path, struct err *err)
{
	const struct dataset *d = s->data;
	struct safetensors *file;
	const char *m, *v;
	int rc;

	if (cfg->mean || cfg->std)
		return 0;
	rc = safetensors_open(&file, path, err);
	if (rc)
		return rc;
	m = safetensors_meta(file, "mean");
	v = safetensors_meta(file, "std");
	if (m && v && d->kind == SAMPLE_IMAGE && d->dtype == DTYPE_U8)
		rc = take_file_norm(s, path, m, v, err);
	safetensors_close(file);
	return rc;
}

static bool is_weight(const struct tensor *t)
{
	return t->kind == TENSOR_PARAM || t->kind == TENSOR_STAT;
}

bool initial_gives(const struct run_config *cfg, const struct model *m, const struct tensor *t)
{
	const char *skipped = cfg->reset_head ? m->head : NULL;

	if (weights_is_adapter(t))
		return cfg->adapter != NULL;
	return cfg->init_from && is_weight(t) && !(skipped && !strncmp(t->name, skipped, strlen(skipped)));
}

static int load_adapter(const struct tensors *s, const struct run_config *cfg, const char *base_hash, struct err *err)
{
	char path[4200];
	int rc = base_hash[0] ? adapter_check_base(cfg->adapter, base_hash, cfg->init_from, err) : 0;

	if (rc)
		return rc;
	if (!file_join(path, sizeof(path), cfg->adapter, ADAPTER_MODEL))
		return err_set(err, ERR_USAGE, "%.100s…: the path is too long", cfg->adapter);
	return files_load_weights(s, &(struct weights_load_opts){ .path = path, .part = WEIGHTS_ADAPTER }, err);
}

int initial_load_weights(const struct tensors *s, const struct run_config *cfg, const struct weights_load_opts *o,
			 char base_hash[65], struct err *err)
{
	int rc = files_load_weights(s, o, err);

	if (!rc && cfg->lora && s->comm->rank == 0)
		rc = adapter_hash_base(base_hash, o->path, err);
	return rc || !cfg->adapter ? rc : load_adapter(s, cfg, base_hash, err);
}

int initial_load(const struct tensors *s, const struct run_config *cfg, struct workload *workload, struct err *err)
{
	const char *head = workload->model->head;
	const struct weights_load_opts o = { .path = cfg->init_from,
					     .head = head,
					     .skip = cfg->reset_head ? head : NULL,
					     .evaluates = cfg->test_only };
	int rc;

	if (cfg->reset_head && !head)
		return err_set(err, ERR_USAGE, "--reset-head: %s has no separate classifier", workload->model->name);
	rc = initial_load_weights(s, cfg, &o, workload->base_hash, err);
	return rc ? rc : initial_normalize(workload, cfg, cfg->init_from, err);
}

static bool pattern_matches_some(const struct graph *g, const char *pattern)
{
	for (int i = 0; i < g->n_tensors; i++)
		if (is_weight(g->tensors[i]) && !fnmatch(pattern, g->tensors[i]->name, 0))
			return true;
	return false;
}

int initial_check_freeze(const struct graph *g, const struct run_config *cfg, const struct model *m, struct err *err)
{
	const char *at = cfg->freeze;
	bool trains = false;

	for (; at && *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
		char one[256];

		snprintf(one, sizeof(one), "%.*s", (int)strcspn(at, ",") - (*at == '!'), at + (*at == '!'));
		if (!pattern_matches_some(g, one))
			return err_set(err, ERR_USAGE, "--freeze %.100s: no parameter of %s matches", one, m->name);
	}
	for (int i = 0; i < g->n_tensors; i++)
		trains |= g->tensors[i]->kind == TENSOR_PARAM && !g->tensors[i]->frozen;
	if (!trains && !cfg->test_only)
		return err_set(err, ERR_USAGE, "--freeze %.200s: nothing is left to train", cfg->freeze);
	return 0;
}
