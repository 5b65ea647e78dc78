/* SPDX-License-Identifier: Apache-2.0 */
/* gpt_file.c: reads the sizes of a GPT from its weights file. */
#include "trainer/weights/gpt_file.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/file.h"
#include "tracker/base/json_print.h"
#include "tracker/base/utf8.h"
#include "trainer/weights/adapter_file.h"
#include "trainer/weights/hf_json.h"
#include "trainer/weights/weight_layout.h"

/* Reads and writes config.json of a GPT-2. Format: GPT2Config in
 * https://huggingface.co/docs/transformers/model_doc/gpt2 */

#define PATH_BYTES 4200
#define COMPANION_BYTES_MAX ((size_t)256 << 20)

static int sibling_path(char *ret, const char *weights, const char *name, struct err *err)
{
	const char *slash = strrchr(weights, '/');
	int dir = slash ? (int)(slash - weights) + 1 : 0;

	if (snprintf(ret, PATH_BYTES, "%.*s%s", dir, weights, name) >= PATH_BYTES)
		return err_set(err, ERR_USAGE, "%.100s…: the path is too long", weights);
	return 0;
}

/* Readers take GPT-2's own ids of tokens unless both are there. */
static json_t *gpt2_config_json(const struct hf_config *c)
{
	json_t *begin = c->separator < 0 ? json_null() : json_integer(c->separator), *end = json_incref(begin);

	return json_pack("{s:[s], s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:b, s:f, s:f, s:f, s:o, s:o}",
			 "architectures", "GPT2LMHeadModel", "model_type", "gpt2", "activation_function", "gelu_new",
			 "n_layer", (json_int_t)c->layers, "n_head", (json_int_t)c->heads, "n_embd",
			 (json_int_t)c->width, "n_positions", (json_int_t)c->context, "n_ctx", (json_int_t)c->context,
			 "vocab_size", (json_int_t)c->vocab, "layer_norm_epsilon", 1e-5, "initializer_range", 0.02,
			 "tie_word_embeddings", c->tied, "embd_pdrop", c->dropout, "attn_pdrop", c->dropout,
			 "resid_pdrop", c->dropout, "bos_token_id", begin, "eos_token_id", end);
}

/* Returns true for a GPT-2 and its relatives, which have the same keys; old files have no model_type. */
static bool is_gpt2(const json_t *root)
{
	const char *type = json_string_value(json_object_get(root, "model_type"));

	return (type && !strcmp(type, "gpt2")) || json_object_get(root, "n_embd");
}

/* Files of a tokenizer, what a model says by default, and the terms under which it may be passed on. */
static bool is_companion(const char *name)
{
	static const char *const patterns[] = { "tokenizer.json",
						"tokenizer_config.json",
						"special_tokens_map.json",
						"added_tokens.json",
						"vocab.json",
						"merges.txt",
						"tokenizer.model",
						HF_CHAT_TEMPLATE,
						"generation_config.json",
						"licen[cs]e*",
						"notice*",
						"copying*",
						"use_policy*" };

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		if (!fnmatch(patterns[i], name, FNM_CASEFOLD))
			return true;
	return false;
}

/* Copies a folder's companions, unless they are there. */
static int copy_companions(const char *folder, const char *weights, struct err *err)
{
	char from[PATH_BYTES], to[PATH_BYTES];
	DIR *listed = opendir(folder);
	struct err unread = ERR_INIT;
	struct dirent *entry;
	struct stat st;
	struct buf text;
	int rc = 0;

	while (!rc && listed && (entry = readdir(listed))) {
		if (!is_companion(entry->d_name) || !file_join(from, sizeof(from), folder, entry->d_name) ||
		    stat(from, &st) || !S_ISREG(st.st_mode))
			continue;
		rc = sibling_path(to, weights, entry->d_name, err);
		if (rc || !access(to, F_OK))
			continue;
		buf_init(&text, COMPANION_BYTES_MAX);
		if (!file_load(&text, from, &unread))
			rc = file_replace(to, text.data ? text.data : "", text.len, err);
		buf_done(&text);
	}
	if (listed)
		closedir(listed);
	return rc;
}

static int write_chat_template(const char *text, const char *weights, struct err *err)
{
	char path[PATH_BYTES];
	int rc = sibling_path(path, weights, HF_CHAT_TEMPLATE, err);

	return rc ? rc : file_replace(path, text, strlen(text), err);
}

int hf_config_write(const struct hf_config *c, const char *weights, struct err *err)
{
	char path[PATH_BYTES];
	struct buf text;
	json_t *old;
	json_error_t why;
	int rc = sibling_path(path, weights, "config.json", err);
	bool foreign;

	if (!rc && c->chat_template)
		rc = write_chat_template(c->chat_template, weights, err);
	if (rc)
		return rc;
	if (c->lora) {
		file_name_folder(weights, path, sizeof(path));
		return adapter_write_config(c->lora, c->folder, path, err);
	}
	if (c->text) {
		rc = access(path, F_OK) ? file_replace(path, c->text, c->text_bytes, err) : 0;
		return rc ? rc : copy_companions(c->folder, weights, err);
	}
	old = hf_json_load(path, &why);
	foreign = !is_gpt2(old) && access(path, F_OK) == 0;
	json_decref(old);
	if (foreign)
		return 0;
	buf_init(&text, CONFIG_BYTES_MAX);
	json_append(gpt2_config_json(c), JSON_INDENT(2) | JSON_PRESERVE_ORDER, &text);
	rc = buf_failed(&text) ? err_nomem(err, path) : file_replace(path, text.data, text.len, err);
	buf_done(&text);
	return rc;
}

/* Refuses what a GPT-2 may ask for and dptrain does not compute: the same weights would give other numbers. */
static int check_gpt2_json(const json_t *root, const char *path, struct err *err)
{
	static const struct {
		const char *key;
		bool want;
	} switches[] = { { "scale_attn_weights", true },
			 { "scale_attn_by_inverse_layer_idx", false },
			 { "add_cross_attention", false } };
	const char *act = json_string_value(json_object_get(root, "activation_function"));
	const char *type = json_string_value(json_object_get(root, "model_type"));
	const json_t *epsilon = json_object_get(root, "layer_norm_epsilon"), *inner = json_object_get(root, "n_inner");
	const json_int_t width = json_integer_value(json_object_get(root, "n_embd"));

	if (type && strcmp(type, "gpt2"))
		return err_set(err, ERR_USAGE, "%.300s: model_type \"%.40s\": only gpt2 is supported", path, type);
	if (act && strcmp(act, "gelu_new") && strcmp(act, "gelu_pytorch_tanh"))
		return err_set(err, ERR_USAGE, "%.300s: activation_function \"%.40s\": only gelu_new is supported",
			       path, act);
	if (epsilon && fabs(json_number_value(epsilon) - 1e-5) > 1e-12)
		return err_set(err, ERR_USAGE, "%.300s: layer_norm_epsilon %g: only 1e-05 is supported", path,
			       json_number_value(epsilon));
	if (json_is_integer(inner) && json_integer_value(inner) != 4 * width)
		return err_set(err, ERR_USAGE, "%.300s: n_inner %lld: only 4 n_embd = %lld is supported", path,
			       (long long)json_integer_value(inner), (long long)(4 * width));
	for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
		const json_t *v = json_object_get(root, switches[i].key);

		if (json_is_boolean(v) && json_is_true(v) != switches[i].want)
			return err_set(err, ERR_USAGE, "%.300s: %s %s: only %s is supported", path, switches[i].key,
				       json_is_true(v) ? "true" : "false", switches[i].want ? "true" : "false");
	}
	return 0;
}

static int64_t integer_member(const json_t *root, const char *key)
{
	return json_integer_value(json_object_get(root, key));
}

int hf_config_read(struct hf_config *ret, const char *weights, struct err *err)
{
	char path[PATH_BYTES];
	json_error_t why;
	json_t *root, *tied;
	int rc = sibling_path(path, weights, "config.json", err);

	if (rc || access(path, F_OK))
		return rc;
	root = hf_json_load(path, &why);
	if (!root)
		return err_set(err, ERR_USAGE, "%.300s:%d: %.100s", path, why.line, why.text);
	rc = is_gpt2(root) ? check_gpt2_json(root, path, err) : 0;
	if (!rc && is_gpt2(root)) {
		rc = 1;
		tied = json_object_get(root, "tie_word_embeddings");
		*ret = (struct hf_config){ .layers = integer_member(root, "n_layer"),
					   .heads = integer_member(root, "n_head"),
					   .width = integer_member(root, "n_embd"),
					   .context = integer_member(root, "n_positions"),
					   .vocab = integer_member(root, "vocab_size"),
					   .tied = !tied || json_is_true(tied) };
	}
	json_decref(root);
	return rc;
}

#define LAYERS_MAX 100000

static bool has_layer(const struct safetensors *s, int64_t i)
{
	char name[80];

	snprintf(name, sizeof(name), "transformer.h.%lld.ln_1.weight", (long long)i);
	return layout_find(s, name) != NULL;
}

static void read_metadata(struct gpt_file *ret, const struct safetensors *s)
{
	const char *heads = safetensors_meta(s, "heads"), *tokenizer = safetensors_meta(s, "tokenizer");

	if (heads)
		ret->config.heads = strtoll(heads, NULL, 10);
	if (tokenizer)
		snprintf(ret->tokenizer, sizeof(ret->tokenizer), "%.70s", tokenizer);
}

int gpt_file_describe(struct gpt_file *ret, const char *path, struct err *err)
{
	struct gpt_file f = { .tokenizer = "" };
	const struct st_tensor *wte, *wpe;
	struct hf_config sibling = { .heads = 0 }; /* config.json next to the file */
	struct safetensors *s;
	int rc = safetensors_open(&s, path, err);

	if (rc)
		return rc;
	wte = layout_find(s, "transformer.wte.weight");
	wpe = layout_find(s, "transformer.wpe.weight");
	if (!wte || !wpe || wte->ndim != 2 || wpe->ndim != 2 || wte->dim[1] != wpe->dim[1] || !has_layer(s, 0)) {
		rc = err_set(err, ERR_USAGE, "%.300s: is not a GPT-2: expected wte.weight, wpe.weight and h.0…", path);
		goto out;
	}
	f.config = (struct hf_config){ .vocab = wte->dim[0], .width = wte->dim[1], .context = wpe->dim[0] };
	while (f.config.layers < LAYERS_MAX && has_layer(s, f.config.layers))
		f.config.layers++;
	f.config.tied = !safetensors_find(s, "lm_head.weight") || layout_repeats_table(s);
	read_metadata(&f, s);
	rc = hf_config_read(&sibling, path, err);
	if (rc < 0)
		goto out;
	if (!f.config.heads && rc && sibling.width == f.config.width)
		f.config.heads = sibling.heads;
	rc = 0;
	*ret = f;
out:
	safetensors_close(s);
	return rc;
}
