/* SPDX-License-Identifier: Apache-2.0 */
/* export_gguf.c: `dptrain export --gguf`: a decoder's folder as a GGUF file. Names, keys and the order of rows are what
 * llama.cpp expects of each architecture; what it fixes by architecture and the model has otherwise is refused. */
#include "trainer/tools/subcommands.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/file.h"
#include "tracker/base/log.h"
#include "tracker/mem/mem.h"
#include "trainer/state/initial.h"
#include "trainer/tools/gguf_tokenizer.h"
#include "trainer/weights/weights.h"

/* What a class is in GGUF. */
static const struct gguf_class {
	const char *architecture, *name;
	bool pairs;   /* channels that are rotated together are neighbours: rows of q and k are reordered */
	bool windows; /* its readers know sliding_window */
	bool biases;
	int64_t pattern; /* all layers but every n-th have a window, or have RoPE; 0: any */
	double local_theta;
	int64_t large; /* with this many layers its readers scale scores by width / heads in place of head_dim */
} classes[] = {
	{ "LlamaForCausalLM", "llama", .pairs = true, .biases = true },
	{ "MistralForCausalLM", "llama", .pairs = true },
	{ "Qwen2ForCausalLM", "qwen2", .biases = true },
	{ "Qwen3ForCausalLM", "qwen3", .pairs = false },
	{ "GemmaForCausalLM", "gemma", .pairs = false },
	{ "Gemma2ForCausalLM", "gemma2", .windows = true, .pattern = 2, .large = 46 },
	{ "Gemma3ForCausalLM", "gemma3", .windows = true, .pattern = 6, .local_theta = 1e4, .large = 62 },
	{ "Olmo2ForCausalLM", "olmo2", .pairs = false },
	{ "Phi3ForCausalLM", "phi3", .windows = true },
	{ "SmolLM3ForCausalLM", "smollm3", .pairs = true, .pattern = 4 },
};

/* A tensor of the file: of the folder, or the stretches of RoPE. */
struct gguf_source {
	const struct st_tensor *from;
	const double *values; /* in place of from */
	int64_t head_dim;     /* rows are reordered within heads of this size; 0: they are not */
	double shift;	      /* added to each value */
};

struct gguf_export {
	const struct run_config *cfg;
	const struct decoder_config *d;
	const struct gguf_class *class;
	struct safetensors *base;
	struct gguf_keys keys;
	struct gguf_tensor *tensors;
	struct gguf_source *sources;
	size_t n;
	enum gguf_type type;
};

/* ---- tensors ---- */

/* Writes the name that a part of a layer has. Returns false if it is not known. */
static bool name_part(const struct gguf_export *x, const char *part, char ret[48])
{
	static const char *const names[][2] = {
		{ "input_layernorm.", "attn_norm." },
		{ "self_attn.q_proj.", "attn_q." },
		{ "self_attn.k_proj.", "attn_k." },
		{ "self_attn.v_proj.", "attn_v." },
		{ "self_attn.o_proj.", "attn_output." },
		{ "self_attn.qkv_proj.", "attn_qkv." },
		{ "self_attn.q_norm.", "attn_q_norm." },
		{ "self_attn.k_norm.", "attn_k_norm." },
		{ "mlp.gate_proj.", "ffn_gate." },
		{ "mlp.up_proj.", "ffn_up." },
		{ "mlp.gate_up_proj.", "ffn_up." },
		{ "mlp.down_proj.", "ffn_down." },
		{ "pre_feedforward_layernorm.", "ffn_norm." },
		{ "post_feedforward_layernorm.", "post_ffw_norm." },
		{ "post_attention_layernorm.", "ffn_norm." },
	};
	const bool after = x->d->class->has & (DECODER_NORM_AFTER | DECODER_NORM_BOTH);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const size_t n = strlen(names[i][0]);
		const bool moved = after && !strcmp(names[i][0], "post_attention_layernorm.");

		if (strncmp(part, names[i][0], n))
			continue;
		snprintf(ret, 48, "%s%.20s", moved ? "post_attention_norm." : names[i][1], part + n);
		return true;
	}
	return false;
}

/* Writes the name of a tensor; "": it is not in the file. */
static int name_tensor(const struct gguf_export *x, const struct st_tensor *t, char ret[64], struct err *err)
{
	char part[48];
	int layer, at = 0;

	ret[0] = '\0';
	if (!strcmp(t->name, "model.embed_tokens.weight"))
		snprintf(ret, 64, "token_embd.weight");
	else if (!strcmp(t->name, "model.norm.weight"))
		snprintf(ret, 64, "output_norm.weight");
	else if (!strcmp(t->name, "lm_head.weight"))
		snprintf(ret, 64, "%s", x->d->tied ? "" : "output.weight");
	else if (sscanf(t->name, "model.layers.%d.%n", &layer, &at) == 1 && at && name_part(x, t->name + at, part))
		snprintf(ret, 64, "blk.%d.%s", layer, part);
	else if (!strstr(t->name, "rotary_emb.inv_freq"))
		return err_set(err, ERR_USAGE, "%.200s: %.100s: %s has no such tensor in GGUF files",
			       safetensors_path(x->base), t->name, x->class->architecture);
	return 0;
}

static int add_gguf_tensor(struct gguf_export *x, const struct st_tensor *t, struct err *err)
{
	struct gguf_tensor *to = &x->tensors[x->n];
	struct gguf_source *from = &x->sources[x->n];
	const bool norm = strstr(t->name, "norm.weight") != NULL;
	int rc = name_tensor(x, t, to->name, err);

	if (rc || !to->name[0])
		return rc;
	if (t->ndim < 1 || t->ndim > 2)
		return err_set(err, ERR_USAGE, "%.200s: %.100s: has %d dimensions", safetensors_path(x->base), t->name,
			       t->ndim);
	to->rows = t->ndim == 2 ? t->dim[0] : 0;
	to->n = t->dim[t->ndim - 1];
	to->type = t->ndim == 1 ? GGUF_F32 : x->type == GGUF_Q8_0 && to->n % GGUF_BLOCK ? GGUF_F16 : x->type;
	from->from = t;
	from->shift = norm && x->d->class->has & DECODER_GEMMA ? 1 : 0;
	if (x->class->pairs && (strstr(t->name, ".q_proj.") || strstr(t->name, ".k_proj.")))
		from->head_dim = x->d->head_dim;
	x->n++;
	return 0;
}

static void add_stretches(struct gguf_export *x, const char *name, const double *values)
{
	x->tensors[x->n] = (struct gguf_tensor){ .n = x->d->rope[DECODER_FULL].rotary / 2, .type = GGUF_F32 };
	snprintf(x->tensors[x->n].name, sizeof(x->tensors[x->n].name), "%s", name);
	x->sources[x->n++].values = values;
}

/* Returns the row of the folder that row `to` of the file is: channels i and i + d/2 of a head become neighbours. */
static int64_t source_row(const struct gguf_source *s, int64_t to)
{
	const int64_t d = s->head_dim, at = d ? to % d : 0;

	return d ? to - at + at % 2 * (d / 2) + at / 2 : to;
}

static int read_gguf_row(void *user, size_t i, int64_t row, double *ret, struct err *err)
{
	const struct gguf_export *x = user;
	const struct gguf_source *s = &x->sources[i];
	const int64_t n = x->tensors[i].n;

	if (rank_context_kept_stop())
		return err_set(err, ERR_CANCELED, "stopped: nothing was written");
	if (s->values)
		memcpy(ret, s->values, (size_t)n * sizeof(*ret));
	else if (x->tensors[i].rows || !s->head_dim)
		safetensors_f64(s->from, source_row(s, row) * n, n, ret);
	else
		for (int64_t k = 0; k < n; k++)
			safetensors_f64(s->from, source_row(s, k), 1, ret + k);
	for (int64_t k = 0; s->shift > 0 && k < n; k++)
		ret[k] = (double)((float)ret[k] + (float)s->shift);
	return 0;
}

/* ---- keys ---- */

static int refuse_gguf_key(const char *key, const char *why, struct err *err)
{
	return err_set(err, ERR_USAGE, "config.json: %s: %s", key, why);
}

/* Refuses what readers of this architecture would compute otherwise. */
static int check_gguf_model(const struct gguf_export *x, struct err *err)
{
	const struct decoder_config *d = x->d;
	const unsigned char *layers = d->turned ? d->turned : d->windowed;
	const double scored = (double)(x->class->large == d->layers ? d->width / d->heads : d->head_dim);

	if ((d->attention_bias || d->mlp_bias) && !x->class->biases)
		return refuse_gguf_key("attention_bias", "GGUF files of this class have no biases", err);
	if ((d->act.cubic > 0) != ((d->class->has & DECODER_GELU) != 0))
		return refuse_gguf_key("hidden_act", "GGUF files of this class have another", err);
	if (x->class->pattern && !layers)
		return refuse_gguf_key("sliding_window", "is missing: GGUF files of this class have one", err);
	for (int64_t i = 0; x->class->pattern && i < d->layers; i++)
		if (layers[i] != ((i + 1) % x->class->pattern != 0))
			return refuse_gguf_key(
				d->turned ? "no_rope_layers" : "layer_types",
				"GGUF files of this class have a fixed pattern of layers, and this is another", err);
	if (d->windowed && x->class->local_theta > 0 &&
	    fabs(d->rope[DECODER_WINDOWED].theta - x->class->local_theta) > 0)
		return refuse_gguf_key("rope_local_base_freq", "is always 10000 in GGUF files of this class", err);
	if (fabs(d->query_scale * sqrt(scored / (double)d->head_dim) - 1) > 1e-6)
		return refuse_gguf_key("query_pre_attn_scalar", "is not what readers of GGUF take for this class", err);
	if (d->windowed && !x->class->windows)
		log_warn("sliding_window %lld: readers of GGUF do not know it for this class: answers are the same up "
			 "to that length",
			 (long long)d->window);
	return 0;
}

static void put_size(struct gguf_export *x, const char *key, int64_t v)
{
	char name[80];

	snprintf(name, sizeof(name), "%s.%s", x->class->name, key);
	gguf_put_u32(&x->keys, name, (uint32_t)v);
}

static void put_real(struct gguf_export *x, const char *key, double v)
{
	char name[80];

	snprintf(name, sizeof(name), "%s.%s", x->class->name, key);
	gguf_put_f32(&x->keys, name, v);
}

/* Adds the sizes of the model and the constants of its layers. */
static void put_sizes(struct gguf_export *x)
{
	const struct decoder_config *d = x->d;

	put_size(x, "context_length", d->context);
	put_size(x, "embedding_length", d->width);
	put_size(x, "block_count", d->layers);
	put_size(x, "feed_forward_length", d->inner);
	put_size(x, "vocab_size", d->vocab);
	put_size(x, "attention.head_count", d->heads);
	put_size(x, "attention.head_count_kv", d->shared);
	put_size(x, "attention.key_length", d->head_dim);
	put_size(x, "attention.value_length", d->head_dim);
	put_real(x, "attention.layer_norm_rms_epsilon", d->eps);
	put_size(x, "rope.dimension_count", d->rope[DECODER_FULL].rotary);
	put_real(x, "rope.freq_base", d->rope[DECODER_FULL].theta);
	if (d->windowed && x->class->windows)
		put_size(x, "attention.sliding_window", d->window);
	if (d->class->has & DECODER_SOFT_CAPS) {
		put_real(x, "attn_logit_softcapping", d->score_cap);
		put_real(x, "final_logit_softcapping", d->logit_cap);
	}
}

/* Adds the scaling of RoPE, as keys or as tensors. */
static int put_scaling(struct gguf_export *x, struct err *err)
{
	const struct decoder_rope *r = &x->d->rope[DECODER_FULL];
	char key[80];

	if (!strcmp(r->type, "default"))
		return 0;
	if (!strcmp(r->type, "llama3")) {
		add_stretches(x, "rope_freqs.weight", r->stretch);
	} else if (!strcmp(r->type, "longrope") || !strcmp(r->type, "su")) {
		add_stretches(x, "rope_factors_long.weight", r->longer);
		add_stretches(x, "rope_factors_short.weight", r->stretch);
		put_size(x, "rope.scaling.original_context_length", r->original);
		put_real(x, "rope.scaling.attn_factor", r->factor);
	} else if (!strcmp(r->type, "yarn") && r->yarn <= 0) {
		return refuse_gguf_key("rope_type", "yarn with constants of its own is not in GGUF files", err);
	} else {
		snprintf(key, sizeof(key), "%s.rope.scaling.type", x->class->name);
		gguf_put_text(&x->keys, key, r->type);
		put_real(x, "rope.scaling.factor", r->yarn > 0 ? r->yarn : r->stretch[0]);
		if (r->yarn > 0)
			put_size(x, "rope.scaling.original_context_length", r->yarn_context);
	}
	return 0;
}

static void put_general(struct gguf_export *x)
{
	static const uint32_t file_types[] = { [GGUF_F16] = 1, [GGUF_Q8_0] = 7, [GGUF_BF16] = 32 };
	char path[PATH_MAX];
	const char *name = realpath(x->d->folder, path) ? strrchr(path, '/') + 1 : x->d->folder;

	gguf_put_text(&x->keys, "general.architecture", x->class->name);
	gguf_put_text(&x->keys, "general.type", "model");
	gguf_put_text(&x->keys, "general.name", *name ? name : x->class->name);
	gguf_put_u32(&x->keys, "general.file_type", file_types[x->type]);
	gguf_put_u32(&x->keys, "general.quantization_version", 2);
}

static int put_gguf_vocabulary(struct gguf_export *x, struct err *err)
{
	const struct run_config *cfg = x->cfg;
	struct decoder_generation generation;
	struct gguf_vocabulary v = { .folder = cfg->tokenizer ? cfg->tokenizer : x->d->folder,
				     .rows = x->d->vocab,
				     .generation = &generation };
	int rc = decoder_file_generation(&generation, x->d, err);

	if (!rc)
		rc = chat_open(&v.chat,
			       &(struct chat_opts){ .tokenizer = v.folder, .template_name = cfg->chat_template }, err);
	if (!rc)
		rc = gguf_put_tokenizer(&x->keys, &v, err);
	chat_close(v.chat);
	return rc;
}

/* ---- the command ---- */

/* Checks that the folder has each tensor of the model, in its shape. */
static int check_weights(const struct gguf_export *x, struct err *err)
{
	const struct decoder_config *d = x->d;
	const struct model_config c = { .decoder = d,
					.layers = d->layers,
					.heads = d->heads,
					.width = d->width,
					.context = d->context,
					.seq_len = 1,
					.vocab = d->vocab,
					.tied = d->tied };
	struct graph *g = graph_new(false);
	int rc = g ? model_build(&model_decoder, g, &c, 1, err) : err_nomem(err, "graph");

	if (!rc)
		rc = weights_check(g, &(struct weights_load_opts){ .path = x->cfg->init_from, .part = WEIGHTS_MODEL },
				   err);
	graph_free(g);
	return rc;
}

static int describe_gguf(struct gguf_export *x, struct err *err)
{
	const size_t n = safetensors_count(x->base);
	int rc = check_gguf_model(x, err);

	if (!rc)
		rc = check_weights(x, err);
	x->tensors = mem_array(n + 2, sizeof(*x->tensors));
	x->sources = mem_array(n + 2, sizeof(*x->sources));
	if (rc)
		return rc;
	put_general(x);
	put_sizes(x);
	rc = put_scaling(x, err);
	for (size_t i = 0; !rc && i < n; i++)
		rc = add_gguf_tensor(x, safetensors_at(x->base, i), err);
	return rc ? rc : put_gguf_vocabulary(x, err);
}

/* Finds the decoder and its class, and opens its weights. */
static int open_gguf_export(struct gguf_export *x, struct run_config *cfg, struct err *err)
{
	static const enum gguf_type types[] = {
		[CONFIG_GGUF_F16] = GGUF_F16, [CONFIG_GGUF_BF16] = GGUF_BF16, [CONFIG_GGUF_Q8_0] = GGUF_Q8_0
	};
	int rc = initial_begin(cfg, err);

	if (rc)
		return rc;
	if (!config_given(cfg, FLAG_gguf) || !cfg->out || !cfg->init_from)
		return err_set(err, ERR_USAGE, "dptrain export needs %s",
			       !cfg->init_from ? "--init-from DIR"
			       : !cfg->out     ? "--out FILE"
					       : "--gguf f16, bf16 or q8_0");
	if (cfg->adapter)
		return err_set(
			err, ERR_USAGE,
			"%.300s: is an adapter: merge it first: dptrain merge --init-from %.300s --adapter %.300s "
			"--out DIR",
			cfg->adapter, cfg->init_from, cfg->adapter);
	x->d = cfg->decoder;
	for (size_t i = 0; x->d && i < sizeof(classes) / sizeof(classes[0]); i++)
		if (!strcmp(classes[i].architecture, x->d->class->architecture))
			x->class = &classes[i];
	if (!x->class)
		return err_set(err, ERR_USAGE,
			       "--init-from %.300s: is not a decoder that can be exported, as of Llama, "
			       "Qwen or Gemma",
			       cfg->init_from);
	x->type = types[cfg->gguf];
	rc = file_check_target(cfg->out, err);
	return rc ? rc : safetensors_open(&x->base, cfg->init_from, err);
}

int export_main(struct run_config *cfg, struct buf *out, struct err *err)
{
	struct gguf_export x = { .cfg = cfg };
	int rc;

	buf_init(&x.keys.bytes, SIZE_MAX);
	rank_context_keep_stop();
	rc = open_gguf_export(&x, cfg, err);
	if (!rc)
		rc = describe_gguf(&x, err);
	if (!rc)
		rc = gguf_write(&(struct gguf_write_opts){ .path = cfg->out,
							   .keys = &x.keys,
							   .tensors = x.tensors,
							   .n_tensors = x.n,
							   .row = read_gguf_row,
							   .user = &x },
				err);
	if (!rc)
		buf_addf(out, "%s: %zu tensors of %s as GGUF\n", cfg->out, x.n, x.class->name);
	safetensors_close(x.base);
	buf_done(&x.keys.bytes);
	free(x.tensors);
	free(x.sources);
	if (rank_context_kept_stop())
		raise(rank_context_kept_stop()); /* ends the process, as its handler is gone */
	return rc;
}
