/* SPDX-License-Identifier: Apache-2.0 */
/* decoder_file.c: config.json of decoders. Keys and defaults are those of transformers' configuration classes, RoPE's
 * scalings those of its modeling_rope_utils.py. */
#include "trainer/weights/decoder_file.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/file.h"
#include "tracker/base/utf8.h"

#define CONFIG_BYTES_MAX ((size_t)16 << 20)
#define SIZE_MAX_OF_KEY ((json_int_t)1 << 24)
#define LAYERS_MAX 10000

/* A file that is being read. The first failure stays in rc; later reads return their defaults. */
struct config_reader {
	const json_t *root;
	const char *path;
	struct arena *arena;
	struct err *err;
	int rc;
};

static __attribute__((format(printf, 3, 4))) void refuse(struct config_reader *r, const char *key, const char *fmt, ...)
{
	char text[300];
	va_list ap;

	if (r->rc)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->rc = err_set(r->err, ERR_USAGE, "%.300s: %s: %s", r->path, key, text);
}

/* The member of an object; NULL if it is absent or null. */
static const json_t *find_member(const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	return json_is_null(v) ? NULL : v;
}

/* fallback 0: the key is required. */
static int64_t read_size(struct config_reader *r, const char *key, int64_t fallback)
{
	const json_t *v = find_member(r->root, key);

	if (!v && fallback)
		return fallback;
	if (json_is_integer(v) && json_integer_value(v) >= 1 && json_integer_value(v) <= SIZE_MAX_OF_KEY)
		return json_integer_value(v);
	refuse(r, key, v ? "expected an integer from 1 to %lld" : "is missing: expected an integer from 1 to %lld",
	       (long long)SIZE_MAX_OF_KEY);
	return 1;
}

/* fallback NAN: the key is required. */
static double read_number(struct config_reader *r, const json_t *object, const char *key, double fallback)
{
	const json_t *v = find_member(object, key);

	if (!v && !isnan(fallback))
		return fallback;
	if (json_is_number(v) && isfinite(json_number_value(v)) && json_number_value(v) >= 0)
		return json_number_value(v);
	refuse(r, key, v ? "expected a number that is not negative" : "is missing");
	return 1;
}

static bool read_switch(struct config_reader *r, const char *key, bool fallback)
{
	const json_t *v = find_member(r->root, key);

	if (v && !json_is_boolean(v))
		refuse(r, key, "expected true or false");
	return v ? json_is_true(v) : fallback;
}

static const char *read_word(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* ---- RoPE ---- */

/* Reads `count` factors of longrope. */
static void read_factors(struct config_reader *r, const json_t *scaling, const char *key, struct decoder_rope *rope)
{
	const json_t *list = find_member(scaling, key);
	double *to = !strcmp(key, "long_factor") ? rope->longer : rope->stretch;

	if (!json_is_array(list) || (int64_t)json_array_size(list) != rope->rotary / 2) {
		refuse(r, key, "expected a list of %lld numbers, one for each pair of channels",
		       (long long)rope->rotary / 2);
		return;
	}
	for (int64_t i = 0; i < rope->rotary / 2; i++) {
		to[i] = json_number_value(json_array_get(list, (size_t)i));
		if (!(to[i] > 0))
			refuse(r, key, "expected positive numbers");
	}
}

static void scale_longrope(struct config_reader *r, const json_t *scaling, struct decoder_rope *rope)
{
	const int64_t context = read_size(r, "max_position_embeddings", 0);
	const double original =
		read_number(r, find_member(r->root, "original_max_position_embeddings") ? r->root : scaling,
			    "original_max_position_embeddings", (double)context);
	const double factor = read_number(r, scaling, "factor", (double)context / original);

	read_factors(r, scaling, "short_factor", rope);
	read_factors(r, scaling, "long_factor", rope);
	rope->original = (int64_t)original;
	rope->factor =
		read_number(r, scaling, "attention_factor", factor > 1 ? sqrt(1 + log(factor) / log(original)) : 1);
}

/* Slow pairs are stretched, fast ones are not, those between are interpolated. */
static void scale_llama3(struct config_reader *r, const json_t *scaling, struct decoder_rope *rope)
{
	const double factor = read_number(r, scaling, "factor", (double)NAN);
	const double low = read_number(r, scaling, "low_freq_factor", (double)NAN);
	const double high = read_number(r, scaling, "high_freq_factor", (double)NAN);
	const double original = read_number(r, scaling, "original_max_position_embeddings",
					    (double)read_size(r, "max_position_embeddings", 0));

	if (!(high > low) || !(factor >= 1))
		refuse(r, "rope_scaling", "expected factor >= 1 and high_freq_factor > low_freq_factor");
	for (int64_t i = 0; i < rope->rotary / 2; i++) {
		const double wave = 2 * M_PI * pow(rope->theta, 2 * (double)i / (double)rope->rotary);
		const double smooth = (original / wave - low) / (high - low);

		rope->stretch[i] = wave > original / low    ? factor
				   : wave < original / high ? 1
							    : 1 / ((1 - smooth) / factor + smooth);
	}
}

static double yarn_scale(double factor, double m)
{
	return factor <= 1 ? 1 : 0.1 * m * log(factor) + 1;
}

/* The pair that turns `turns` times within the original context. */
static double yarn_pair(const struct decoder_rope *rope, double turns, double original)
{
	return (double)rope->rotary * log(original / (turns * 2 * M_PI)) / (2 * log(rope->theta));
}

/* Pairs that turn often in the original context keep their frequency, slow ones are stretched (Peng et al. 2023). */
static void scale_yarn(struct config_reader *r, const json_t *scaling, struct decoder_rope *rope)
{
	const double context = (double)read_size(r, "max_position_embeddings", 0);
	const double original =
		read_number(r, find_member(r->root, "original_max_position_embeddings") ? r->root : scaling,
			    "original_max_position_embeddings", context);
	const double factor = read_number(r, scaling, "factor", context / original);
	const double m = read_number(r, scaling, "mscale", 0), all = read_number(r, scaling, "mscale_all_dim", 0);
	const double fast = read_number(r, scaling, "beta_fast", 32), slow = read_number(r, scaling, "beta_slow", 1);
	double low = yarn_pair(rope, fast > 0 ? fast : 32, original);
	double high = yarn_pair(rope, slow > 0 ? slow : 1, original);
	const bool whole = !find_member(scaling, "truncate") || json_is_true(find_member(scaling, "truncate"));

	if (whole) {
		low = floor(low);
		high = ceil(high);
	}
	low = fmax(low, 0);
	high = fmin(high, (double)rope->rotary - 1);
	high += low == high ? 0.001 : 0;
	rope->factor =
		read_number(r, scaling, "attention_factor",
			    m > 0 && all > 0 ? yarn_scale(factor, m) / yarn_scale(factor, all) : yarn_scale(factor, 1));
	rope->yarn_context = (int64_t)original;
	if (whole && fast == 32 && slow == 1 && fabs(rope->factor - yarn_scale(factor, 1)) < 1e-6)
		rope->yarn = factor;
	for (int64_t i = 0; i < rope->rotary / 2; i++) {
		const double ramp = fmin(fmax(((double)i - low) / (high - low), 0), 1);

		rope->stretch[i] = 1 / (ramp / factor + 1 - ramp);
	}
}

/* One kind of layer; scaling may be NULL. */
static void read_rope(struct config_reader *r, const struct decoder_config *c, const json_t *scaling, double theta,
		      struct decoder_rope *rope)
{
	const char *new_type = read_word(scaling, "rope_type"),
		   *type = new_type ? new_type : read_word(scaling, "type");
	const double part = read_number(r, find_member(scaling, "partial_rotary_factor") ? scaling : r->root,
					"partial_rotary_factor", 1);

	snprintf(rope->type, sizeof(rope->type), "%s", type ? type : "default");
	rope->theta = read_number(r, scaling, "rope_theta", theta);
	rope->factor = 1;
	rope->rotary = (int64_t)((double)c->head_dim * part);
	if (rope->rotary % 2 || rope->rotary > 2 * ROPE_PAIRS_MAX || part > 1 || !(rope->theta > 1))
		refuse(r, "head_dim", "cannot rotate %lld of %lld channels", (long long)rope->rotary,
		       (long long)c->head_dim);
	if (r->rc || !type || !strcmp(type, "default"))
		return;
	if (!strcmp(type, "linear")) {
		for (int64_t i = 0; i < rope->rotary / 2; i++)
			rope->stretch[i] = read_number(r, scaling, "factor", (double)NAN);
	} else if (!strcmp(type, "llama3")) {
		scale_llama3(r, scaling, rope);
	} else if (!strcmp(type, "longrope") || (c->class->has & DECODER_FUSED && !strcmp(type, "su"))) {
		scale_longrope(r, scaling, rope);
	} else if (!strcmp(type, "yarn")) {
		scale_yarn(r, scaling, rope);
	} else {
		refuse(r, "rope_type", "\"%.40s\" is not computed: default, linear, llama3, yarn and longrope are",
		       type);
	}
}

/* rope_scaling (until version 5 of transformers) or rope_parameters, which may be nested by the layers' type. */
static void read_ropes(struct config_reader *r, struct decoder_config *c)
{
	const json_t *old = find_member(r->root, "rope_scaling"), *new_ = find_member(r->root, "rope_parameters");
	const json_t *full = find_member(new_, "full_attention"), *windowed = find_member(new_, "sliding_attention");
	const double theta = read_number(r, r->root, "rope_theta", c->class->theta);
	double local = theta;

	if (old && new_ && !json_equal(old, new_))
		refuse(r, "rope_scaling", "rope_parameters says something else: remove the one that does not hold");
	read_rope(r, c, full ? full : old ? old : new_, theta, &c->rope[DECODER_FULL]);
	if (c->class->local_theta > 0)
		local = read_number(r, r->root, "rope_local_base_freq", c->class->local_theta);
	if (c->class->local_theta > 0 || windowed)
		read_rope(r, c, windowed, local, &c->rope[DECODER_WINDOWED]);
	else
		c->rope[DECODER_WINDOWED] = c->rope[DECODER_FULL];
}

/* ---- layers ---- */

/* A byte for each layer, from a list of texts (1 where it is `yes`) or numbers; NULL: no such key. */
static unsigned char *read_layers(struct config_reader *r, const struct decoder_config *c, const char *key,
				  const char *yes)
{
	const json_t *list = find_member(r->root, key);
	unsigned char *ret;

	if (!list || r->rc)
		return NULL;
	if (!json_is_array(list) || (int64_t)json_array_size(list) != c->layers) {
		refuse(r, key, "expected a list of %lld, one for each layer", (long long)c->layers);
		return NULL;
	}
	ret = arena_alloc(r->arena, (size_t)c->layers);
	for (int64_t i = 0; i < c->layers; i++) {
		const json_t *v = json_array_get(list, (size_t)i);
		const char *word = json_string_value(v);

		ret[i] = word ? !strcmp(word, yes) : json_integer_value(v) != 0;
		if (word && strcmp(word, yes) && strcmp(word, "full_attention"))
			refuse(r, key, "layers of type \"%.40s\" are not computed", word);
	}
	return ret;
}

/* The layers that have a window. */
static void read_windows(struct config_reader *r, struct decoder_config *c)
{
	const struct decoder_class *k = c->class;
	const bool absent = !json_object_get(r->root, "sliding_window");
	const int64_t from = k->windows == DECODER_WINDOW_SWITCHED ? read_size(r, "max_window_layers", 28) : 0;
	const int64_t pattern = k->pattern ? read_size(r, "sliding_window_pattern", k->pattern) : 0;
	const unsigned char *listed = read_layers(r, c, "layer_types", "sliding_attention");
	unsigned char *windowed;

	if (k->windows == DECODER_WINDOW_NONE || (absent && !k->window) ||
	    (!absent && !find_member(r->root, "sliding_window")) ||
	    (k->windows == DECODER_WINDOW_SWITCHED && !read_switch(r, "use_sliding_window", false)) || r->rc)
		return;
	c->window = read_size(r, "sliding_window", k->window);
	windowed = arena_alloc(r->arena, (size_t)c->layers);
	for (int64_t i = 0; i < c->layers; i++)
		windowed[i] = k->windows == DECODER_WINDOW_ALL ? 1
			      : listed			       ? listed[i]
			      : pattern			       ? (i + 1) % pattern != 0
			      : c->turned		       ? !c->turned[i]
							       : i >= from;
	c->windowed = windowed;
}

/* The layers that have RoPE: all, or those of SmolLM3's list. */
static void read_turned(struct config_reader *r, struct decoder_config *c)
{
	const int64_t interval = read_size(r, "no_rope_layer_interval", 4);
	unsigned char *turned = read_layers(r, c, "no_rope_layers", "");

	if (r->rc)
		return;
	if (!turned) {
		turned = arena_alloc(r->arena, (size_t)c->layers);
		for (int64_t i = 0; i < c->layers; i++)
			turned[i] = (i + 1) % interval != 0;
	}
	c->turned = turned;
}

/* ---- the rest ---- */

static void read_act(struct config_reader *r, struct decoder_config *c)
{
	const char *key = find_member(r->root, "hidden_activation") ? "hidden_activation" : "hidden_act";
	const char *act = read_word(r->root, key);

	c->act = c->class->has & DECODER_GELU ? GLU_GELU : GLU_SILU;
	if (!act)
		return;
	if (!strcmp(act, "silu") || !strcmp(act, "swish"))
		c->act = GLU_SILU;
	else if (!strcmp(act, "gelu_pytorch_tanh") || !strcmp(act, "gelu_new"))
		c->act = GLU_GELU;
	else
		refuse(r, key, "\"%.40s\" is not computed: silu and gelu_pytorch_tanh are%s", act,
		       !strcmp(act, "gelu") ? "; Gemma was trained with the latter: write that" : "");
}

static void read_dtype(struct config_reader *r, struct decoder_config *c)
{
	static const struct {
		const char *name;
		enum dtype dtype;
	} types[] = {
		{ "float32", DTYPE_F32 }, { "bfloat16", DTYPE_BF16 }, { "float16", DTYPE_F16 }, { "float64", DTYPE_F64 }
	};
	const char *name = read_word(r->root, "dtype");

	if (!name)
		name = read_word(r->root, "torch_dtype");
	c->dtype = DTYPE_F32;
	for (size_t i = 0; name && i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(types[i].name, name))
			c->dtype = (int)types[i].dtype;
}

/* Refuses what would give other numbers, by name. */
static void refuse_foreign(struct config_reader *r)
{
	static const char *const nothing[] = { "quantization_config", "num_experts", "num_local_experts" };
	static const char *const zero[] = { "attention_dropout", "resid_pdrop", "embd_pdrop" };

	for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++)
		if (find_member(r->root, nothing[i]))
			refuse(r, nothing[i], "models that have it cannot be trained");
	for (size_t i = 0; i < sizeof(zero) / sizeof(zero[0]); i++)
		if (read_number(r, r->root, zero[i], 0) > 0)
			refuse(r, zero[i], "dropout is not computed for this class: set it to 0");
	if (read_switch(r, "use_bidirectional_attention", false))
		refuse(r, "use_bidirectional_attention", "only causal attention is computed");
}

/* √width in the type of the weights, as transformers rounds it. */
static double root_of_width(const struct decoder_config *c)
{
	double v = sqrt((double)c->width);
	int exponent;

	if (c->dtype == DTYPE_BF16 || c->dtype == DTYPE_F16) {
		const double unit = ldexp(1, c->dtype == DTYPE_BF16 ? 8 : 11);

		v = frexp(v, &exponent);
		return ldexp(rint(v * unit) / unit, exponent);
	}
	return (double)(float)v;
}

/* 0: none, which is also what null means. */
static double read_cap(struct config_reader *r, const char *key, double fallback)
{
	return read_number(r, r->root, key, json_object_get(r->root, key) ? 0 : fallback);
}

/* Reads every key; a size of 1 stands for one that was refused. */
static void read_decoder(struct config_reader *r, struct decoder_config *c)
{
	const unsigned has = c->class->has;

	refuse_foreign(r);
	c->layers = read_size(r, "num_hidden_layers", 0);
	c->heads = read_size(r, "num_attention_heads", 0);
	c->width = read_size(r, "hidden_size", 0);
	c->inner = read_size(r, "intermediate_size", 0);
	c->vocab = read_size(r, "vocab_size", 0);
	c->context = read_size(r, "max_position_embeddings", 0);
	c->shared = read_size(r, "num_key_value_heads",
			      json_object_get(r->root, "num_key_value_heads") || !c->class->shared ? c->heads
												   : c->class->shared);
	c->head_dim = read_size(r, "head_dim", c->class->head_dim ? c->class->head_dim : c->width / c->heads);
	if (c->layers > LAYERS_MAX)
		refuse(r, "num_hidden_layers", "expected at most %d", LAYERS_MAX);
	if (c->heads % c->shared)
		refuse(r, "num_key_value_heads", "%lld does not divide num_attention_heads %lld", (long long)c->shared,
		       (long long)c->heads);
	c->tied = read_switch(r, "tie_word_embeddings", c->class->tied);
	c->attention_bias = has & DECODER_BIASES && read_switch(r, "attention_bias", false);
	c->mlp_bias = has & DECODER_MLP_BIAS && read_switch(r, "mlp_bias", false);
	c->eps = read_number(r, r->root, "rms_norm_eps", c->class->eps);
	read_dtype(r, c);
	c->embed_scale = has & DECODER_GEMMA ? root_of_width(c) : 1;
	c->query_scale = has & DECODER_QUERY_SCALAR
				 ? sqrt((double)c->head_dim / read_number(r, r->root, "query_pre_attn_scalar", 256))
				 : 1;
	c->score_cap = read_cap(r, "attn_logit_softcapping", has & DECODER_SOFT_CAPS ? 50 : 0);
	c->logit_cap = read_cap(r, "final_logit_softcapping", has & DECODER_SOFT_CAPS ? 30 : 0);
	read_act(r, c);
	if (has & DECODER_SKIPS_ROPE)
		read_turned(r, c);
	read_windows(r, c);
	if (!r->rc)
		read_ropes(r, c);
}

static const struct decoder_class *find_decoder_class(struct config_reader *r)
{
	const char *name = json_string_value(json_array_get(json_object_get(r->root, "architectures"), 0));
	char known[400] = "";
	size_t n = 0;

	for (int i = 0; i < decoder_class_count; i++) {
		if (name && !strcmp(decoder_classes[i].architecture, name))
			return &decoder_classes[i];
		n += (size_t)snprintf(known + n, sizeof(known) - n, ", %s", decoder_classes[i].architecture);
	}
	refuse(r, "architectures", "\"%.60s\" is not a class that dptrain trains: GPT2LMHeadModel%s", name ? name : "",
	       known);
	return NULL;
}

/* A GPT-2 is read by gpt_file.c; old files of it have no model_type. */
static bool is_gpt2_root(const json_t *root)
{
	const char *type = read_word(root, "model_type");

	return (type && !strcmp(type, "gpt2")) || json_object_get(root, "n_embd");
}

static int read_root(struct config_reader *r, const struct decoder_config **ret, const struct buf *text)
{
	const struct decoder_class *class;
	struct decoder_config *c;
	char *json;

	if (is_gpt2_root(r->root))
		return 0;
	class = find_decoder_class(r);
	if (!class)
		return r->rc;
	c = arena_alloc(r->arena, sizeof(*c));
	json = arena_alloc(r->arena, text->len + 1);
	memcpy(json, text->data, text->len);
	*c = (struct decoder_config){ .class = class, .json = json, .json_bytes = text->len };
	c->folder = strrchr(r->path, '/')
			    ? arena_printf(r->arena, "%.*s", (int)(strrchr(r->path, '/') - r->path), r->path)
			    : ".";
	read_decoder(r, c);
	*ret = c;
	return r->rc ? r->rc : 1;
}

/* Reads a file into text and *ret, which the caller releases. */
static int load_json(json_t **ret, struct buf *text, const char *path, struct err *err)
{
	json_error_t why = { .line = 0 };
	int rc = file_load(text, path, err);
	size_t mark;

	if (!rc && text->len) {
		mark = utf8_mark(text->data, text->len);
		*ret = json_loadb(text->data + mark, text->len - mark, 0, &why);
	}
	if (!rc && !*ret)
		rc = err_set(err, ERR_USAGE, "%.300s:%d: %.100s", path, why.line, text->len ? why.text : "is empty");
	return rc;
}

int decoder_file_read(const struct decoder_config **ret, const char *path, struct arena *arena, struct err *err)
{
	struct config_reader r = { .path = path, .arena = arena, .err = err };
	json_t *root = NULL;
	struct buf text;
	int rc;

	if (access(path, F_OK))
		return 0;
	buf_init(&text, CONFIG_BYTES_MAX);
	rc = load_json(&root, &text, path, err);
	r.root = root;
	if (!rc)
		rc = read_root(&r, ret, &text);
	json_decref(root);
	buf_done(&text);
	return rc;
}

/* Adds the tokens of eos_token_id: a number, a list of them, or null. */
static void read_ends(struct config_reader *r, struct decoder_generation *ret)
{
	const json_t *end = find_member(r->root, "eos_token_id"), *v;
	const size_t n = json_is_array(end) ? json_array_size(end) : end ? 1 : 0;

	if (n > DECODER_ENDS_MAX)
		refuse(r, "eos_token_id", "has more than %d tokens", DECODER_ENDS_MAX);
	for (size_t i = 0; !r->rc && i < n; i++) {
		v = json_is_array(end) ? json_array_get(end, i) : end;
		if (!json_is_integer(v))
			refuse(r, "eos_token_id", "expected an integer or a list of integers");
		ret->end[ret->n_ends++] = json_integer_value(v);
	}
}

/* Returns a number of at most `most`, or NAN. */
static double read_optional(struct config_reader *r, const char *key, double most)
{
	const double x = find_member(r->root, key) ? read_number(r, r->root, key, 0) : (double)NAN;

	if (x > most)
		refuse(r, key, "expected at most %g", most);
	return x;
}

int decoder_file_generation(struct decoder_generation *ret, const struct decoder_config *c, struct err *err)
{
	struct config_reader r = { .err = err };
	json_t *root = NULL;
	struct buf text;
	char path[4200];

	*ret = (struct decoder_generation){ .n_ends = 0 };
	snprintf(path, sizeof(path), "%s/generation_config.json", c->folder);
	if (access(path, F_OK))
		snprintf(path, sizeof(path), "%s/config.json", c->folder);
	r.path = path;
	buf_init(&text, CONFIG_BYTES_MAX);
	r.rc = load_json(&root, &text, path, err);
	r.root = root;
	if (!r.rc) {
		read_ends(&r, ret);
		ret->temperature = read_switch(&r, "do_sample", true) ? read_optional(&r, "temperature", 100) : 0;
		ret->top_k = read_optional(&r, "top_k", INT32_MAX);
		ret->top_p = read_optional(&r, "top_p", 1);
	}
	json_decref(root);
	buf_done(&text);
	return r.rc;
}
