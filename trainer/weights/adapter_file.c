/* SPDX-License-Identifier: Apache-2.0 */
/* adapter_file.c: reads and writes adapter_config.json; the hash of the weights that an adapter belongs to. Keys are
 * those of LoraConfig in PEFT 0.21. */
#include "trainer/weights/adapter_file.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/crc32c.h"
#include "tracker/base/file.h"
#include "tracker/base/json_print.h"
#include "tracker/base/sha256.h"
#include "tracker/mem/mem.h"
#include "trainer/weights/hf_json.h"

#define RANK_MAX 65536
#define PATH_BYTES 4200

/* ---- terms ---- */

/* Returns the bit of a target named by n bytes of text, with or without "_proj"; 0: none. */
static unsigned target_bit(const char *text, size_t n)
{
	for (int i = 0; decoder_targets[i]; i++) {
		const size_t whole = strlen(decoder_targets[i]), stem = whole - strlen("_proj");

		if ((n == whole || n == stem) && !strncmp(text, decoder_targets[i], n))
			return 1u << i;
	}
	return 0;
}

static int refuse_target(const char *text, size_t n, unsigned known, struct err *err)
{
	char names[160] = "";
	size_t at = 0;

	for (int i = 0; decoder_targets[i]; i++)
		if (known & 1u << i)
			at += (size_t)snprintf(names + at, sizeof(names) - at, ", %.*s",
					       (int)(strlen(decoder_targets[i]) - strlen("_proj")), decoder_targets[i]);
	return err_set(err, ERR_USAGE, "--lora-targets '%.*s': expected all-linear, or a list of %s", (int)n, text,
		       names + 2);
}

static int parse_targets(unsigned *ret, const char *text, const struct decoder_class *class, struct err *err)
{
	const unsigned known = decoder_linears(class);

	*ret = known;
	if (!strcmp(text, "all-linear"))
		return 0;
	*ret = 0;
	for (const char *at = text;; at++) {
		const size_t n = strcspn(at, ",");
		const unsigned bit = target_bit(at, n) & known;

		if (!bit)
			return refuse_target(at, n < 40 ? n : 40, known, err);
		*ret |= bit;
		at += n;
		if (!*at)
			return 0;
	}
}

int adapter_parse(struct decoder_lora *ret, const struct adapter_terms *t, const struct decoder_class *class,
		  struct err *err)
{
	struct decoder_lora l = { .rooted = t->rooted };
	char *end;

	l.rank = strtoll(t->lora, &end, 10);
	l.alpha = 2 * (double)l.rank;
	if (end != t->lora && *end == ',')
		l.alpha = strtod(end + 1, &end);
	if (end == t->lora || *end || l.rank < 1 || l.rank > RANK_MAX || !(l.alpha > 0) || !isfinite(l.alpha))
		return err_set(err, ERR_USAGE,
			       "--lora '%.60s': expected R or R,ALPHA: a rank from 1 to %d and a factor above 0, as in "
			       "16,32",
			       t->lora, RANK_MAX);
	*ret = l;
	return parse_targets(&ret->targets, t->targets, class, err);
}

/* ---- adapter_config.json ---- */

/* What changes the mathematics, and is not computed. */
static const char *const foreign[] = { "use_dora",
				       "use_qalora",
				       "use_bdlora",
				       "lora_bias",
				       "fan_in_fan_out",
				       "modules_to_save",
				       "rank_pattern",
				       "alpha_pattern",
				       "layer_replication",
				       "kasa_config",
				       "velora_config",
				       "monteclora_config",
				       "target_parameters",
				       "arrow_config",
				       "layers_to_transform",
				       "exclude_modules",
				       "trainable_token_indices",
				       "alora_invocation_tokens" };

static bool is_set(const json_t *v)
{
	return v && !json_is_null(v) && !json_is_false(v) && !(json_is_object(v) && !json_object_size(v)) &&
	       !(json_is_array(v) && !json_array_size(v));
}

/* The last parts of the names, each once; NULL: none. */
static char *list_targets(const json_t *list, struct arena *arena)
{
	char *text = NULL;
	unsigned seen = 0;
	const json_t *v;
	size_t i;

	if (json_is_string(list))
		return arena_strdup(arena, json_string_value(list));
	json_array_foreach(list, i, v) {
		const char *name = json_is_string(v) ? json_string_value(v) : "", *dot = strrchr(name, '.');
		const char *last = dot ? dot + 1 : name;
		const unsigned bit = target_bit(last, strlen(last));

		if (!bit || !(seen & bit))
			text = text ? arena_printf(arena, "%s,%s", text, last) : arena_strdup(arena, last);
		seen |= bit;
	}
	return text;
}

/* Fills *ret from the file's object. Returns what is wrong, or NULL. */
static const char *read_terms(struct adapter_terms *ret, const json_t *root, struct arena *arena)
{
	const char *type = json_string_value(json_object_get(root, "peft_type"));
	const char *bias = json_string_value(json_object_get(root, "bias"));
	const json_t *rank = json_object_get(root, "r"), *alpha = json_object_get(root, "lora_alpha");

	if (!type || strcmp(type, "LORA"))
		return "peft_type: expected LORA";
	if (bias && strcmp(bias, "none"))
		return "bias: only none is computed";
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		if (is_set(json_object_get(root, foreign[i])))
			return arena_printf(arena, "%s: is not computed", foreign[i]);
	if (!json_is_integer(rank) || !json_is_number(alpha))
		return "r and lora_alpha: expected numbers";
	ret->lora = arena_printf(arena, "%lld,%.17g", (long long)json_integer_value(rank), json_number_value(alpha));
	ret->targets = list_targets(json_object_get(root, "target_modules"), arena);
	ret->rooted = json_is_true(json_object_get(root, "use_rslora"));
	return ret->targets ? NULL : "target_modules: expected names";
}

int adapter_read(struct adapter_terms *ret, const char **ret_base, const char *folder, struct arena *arena,
		 struct err *err)
{
	char *path = arena_printf(arena, "%s/" ADAPTER_CONFIG, folder);
	const char *base, *wrong;
	json_error_t why;
	json_t *root = hf_json_load(path, &why);
	int rc = 0;

	if (!root)
		return err_set(err, ERR_USAGE, "%.300s:%d: %.100s", path, why.line, why.text);
	base = json_string_value(json_object_get(root, "base_model_name_or_path"));
	*ret_base = arena_strdup(arena, base ? base : "");
	wrong = read_terms(ret, root, arena);
	if (wrong)
		rc = err_set(err, ERR_USAGE, "%.300s: %s", path, wrong);
	json_decref(root);
	return rc;
}

static json_t *targets_json(const struct decoder_lora *l)
{
	json_t *list = json_array();

	for (int i = 0; decoder_targets[i]; i++)
		if (l->targets & 1u << i)
			json_array_append_new(list, json_string(decoder_targets[i]));
	return list;
}

/* Every key that PEFT writes; those of other methods have its defaults. */
static json_t *adapter_json(const struct decoder_lora *l, const char *base)
{
	static const char *const nulls[] = { "alora_invocation_tokens",
					     "arrow_config",
					     "auto_mapping",
					     "corda_config",
					     "eva_config",
					     "exclude_modules",
					     "kasa_config",
					     "layer_replication",
					     "layers_pattern",
					     "lora_ga_config",
					     "layers_to_transform",
					     "megatron_config",
					     "modules_to_save",
					     "monteclora_config",
					     "revision",
					     "target_parameters",
					     "use_bdlora",
					     "trainable_token_indices",
					     "velora_config" };
	static const char *const no[] = { "ensure_weight_tying", "fan_in_fan_out", "lora_bias", "use_dora",
					  "use_qalora" };
	static const char *const empty[] = { "alpha_pattern", "loftq_config", "rank_pattern" };
	json_t *alpha = l->alpha == rint(l->alpha) ? json_integer((json_int_t)l->alpha) : json_real(l->alpha);
	json_t *root =
		json_pack("{s:s, s:s, s:b, s:b, s:o, s:f, s:s, s:s, s:s, s:i, s:I, s:o, s:s, s:b}",
			  "base_model_name_or_path", base, "bias", "none", "inference_mode", 1, "init_lora_weights", 1,
			  "lora_alpha", alpha, "lora_dropout", 0.0, "megatron_core", "megatron.core", "peft_type",
			  "LORA", "peft_version", "0.21.2", "qalora_group_size", 16, "r", (json_int_t)l->rank,
			  "target_modules", targets_json(l), "task_type", "CAUSAL_LM", "use_rslora", l->rooted);

	for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++)
		json_object_set_new(root, nulls[i], json_null());
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		json_object_set_new(root, no[i], json_false());
	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++)
		json_object_set_new(root, empty[i], json_object());
	return root;
}

int adapter_write_config(const struct decoder_lora *l, const char *base, const char *folder, struct err *err)
{
	char path[PATH_BYTES], whole[PATH_MAX];
	struct buf text;
	int rc;

	if (!file_join(path, sizeof(path), folder, ADAPTER_CONFIG))
		return err_set(err, ERR_USAGE, "%.100s…: the path is too long", folder);
	buf_init(&text, CONFIG_BYTES_MAX);
	json_append(adapter_json(l, realpath(base, whole) ? whole : base), JSON_INDENT(2) | JSON_SORT_KEYS, &text);
	rc = buf_failed(&text) ? err_nomem(err, path) : file_replace(path, text.data, text.len, err);
	buf_done(&text);
	return rc;
}

/* ---- the weights that an adapter belongs to ---- */

static int compare_base_names(const void *a, const void *b)
{
	return strcmp((*(const struct st_tensor *const *)a)->name, (*(const struct st_tensor *const *)b)->name);
}

int adapter_hash_base(char ret[65], const char *path, struct err *err)
{
	const struct st_tensor **list;
	struct safetensors *s;
	struct sha256 sum;
	char line[200];
	size_t n;
	int rc = safetensors_open(&s, path, err);

	if (rc)
		return rc;
	n = safetensors_count(s);
	list = mem_array(n + 1, sizeof(*list));
	for (size_t i = 0; i < n; i++)
		list[i] = safetensors_at(s, i);
	qsort(list, n, sizeof(*list), compare_base_names);
	sha256_init(&sum);
	for (size_t i = 0; i < n; i++) {
		const struct st_tensor *t = list[i];

		sha256_add(&sum, t->name, strlen(t->name) + 1);
		sha256_add(&sum, t->dim, (size_t)t->ndim * sizeof(t->dim[0]));
		snprintf(line, sizeof(line), "%s %08x\n", st_dtype_name(t->dtype), crc32c(0, t->data, t->bytes));
		sha256_add(&sum, line, strlen(line));
	}
	sha256_end(&sum, ret);
	free(list);
	safetensors_close(s);
	return 0;
}

int adapter_check_base(const char *folder, const char *hash, const char *base, struct err *err)
{
	char path[PATH_BYTES];
	struct safetensors *s;
	const char *own;
	int rc = 0;

	if (!file_join(path, sizeof(path), folder, ADAPTER_MODEL))
		return err_set(err, ERR_USAGE, "%.100s…: the path is too long", folder);
	rc = safetensors_open(&s, path, err);
	if (rc)
		return rc;
	own = safetensors_meta(s, ADAPTER_HASH);
	if (own && strcmp(own, hash))
		rc = err_set(err, ERR_USAGE,
			     "%.300s: was trained on other weights than %.200s: give those with "
			     "--init-from",
			     path, base);
	safetensors_close(s);
	return rc;
}
