/* hf_config.c: reads and writes config.json of a GPT-2. Format: GPT2Config in
 * https://huggingface.co/docs/transformers/model_doc/gpt2 */
#include "trainer/weights/hf_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#define PATH_BYTES 4200

static int sibling_path(char *ret, const char *weights, const char *name, struct err *err)
{
	const char *slash = strrchr(weights, '/');
	int dir = slash ? (int)(slash - weights) + 1 : 0;

	if (snprintf(ret, PATH_BYTES, "%.*s%s", dir, weights, name) >= PATH_BYTES)
		return err_set(err, ERR_USAGE, "%.100s…: the path is too long", weights);
	return 0;
}

static json_t *gpt2_config_json(const struct hf_config *c)
{
	return json_pack("{s:[s], s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:b, s:f, s:f, s:f}",
			 "architectures", "GPT2LMHeadModel", "model_type", "gpt2", "activation_function", "gelu_new",
			 "n_layer", (json_int_t)c->layers, "n_head", (json_int_t)c->heads, "n_embd",
			 (json_int_t)c->width, "n_positions", (json_int_t)c->context, "n_ctx", (json_int_t)c->context,
			 "vocab_size", (json_int_t)c->vocab, "layer_norm_epsilon", 1e-5, "initializer_range", 0.02,
			 "tie_word_embeddings", c->tied, "embd_pdrop", c->dropout, "attn_pdrop", c->dropout,
			 "resid_pdrop", c->dropout);
}

static bool is_gpt2(const json_t *root)
{
	const char *type = json_string_value(json_object_get(root, "model_type"));

	return type && !strcmp(type, "gpt2");
}

int hf_config_write(const struct hf_config *c, const char *weights, struct err *err)
{
	char path[PATH_BYTES], temporary[PATH_BYTES + 16];
	json_t *root, *old;
	int rc = sibling_path(path, weights, "config.json", err);
	bool foreign;

	if (rc)
		return rc;
	old = json_load_file(path, 0, NULL);
	foreign = !is_gpt2(old) && access(path, F_OK) == 0;
	json_decref(old);
	if (foreign)
		return 0;
	snprintf(temporary, sizeof(temporary), "%s.%ld", path, (long)getpid());
	root = gpt2_config_json(c);
	if (!root)
		return err_set(err, ERR_NOMEM, "out of memory: %.300s", path);
	if (json_dump_file(root, temporary, JSON_INDENT(2) | JSON_PRESERVE_ORDER) || rename(temporary, path)) {
		rc = err_set_errno(err, errno, "write %.300s", path);
		unlink(temporary);
	}
	json_decref(root);
	return rc;
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
	root = json_load_file(path, 0, &why);
	if (!root)
		return err_set(err, ERR_USAGE, "%.300s:%d: %.100s", path, why.line, why.text);
	rc = is_gpt2(root);
	if (rc) {
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
