/* SPDX-License-Identifier: Apache-2.0 */
/* gguf_tokenizer.c: tokenizer.json as GGUF has it: byte-level BPE as "gpt2" with its merges and the name of its
 * pre-tokenizer; BPE with byte fallback as "llama" (SentencePiece), whose scores are the order of the merges. */
#include "trainer/tools/gguf_tokenizer.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/file.h"
#include "tracker/mem/mem.h"
#include "trainer/ops/cast/float16.h"

#define TOKENIZER_BYTES_MAX ((size_t)1 << 30)

enum { TYPE_NORMAL = 1, TYPE_UNKNOWN, TYPE_CONTROL, TYPE_USER_DEFINED, TYPE_UNUSED, TYPE_BYTE };

#define WORDS "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define REST "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define ENDING "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define GPT4O                                                                                                          \
	"[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" ENDING "[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" ENDING        \
	"\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define DEEPSEEK                                                                                                       \
	"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "            \
	"?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"

/* llama.cpp's names of pre-tokenizers, by what describe_step writes. */
static const struct {
	const char *steps, *name, *when_ignoring; /* … with ignore_merges; NULL: the same */
} pre_tokenizers[] = {
	{ "split " WORDS "\\p{N}{1,3}" REST "\nbytes\n", "dbrx", "llama-bpe" },
	{ "split " WORDS "\\p{N}" REST "\nbytes\n", "qwen2", NULL },
	{ "split " GPT4O "\nbytes\n", "gpt-4o", NULL },
	{ "split \\p{N}{1,3}\nsplit [一-龥぀-ゟ゠-ヿ]+\nsplit " DEEPSEEK "\nbytes\n", "deepseek-v3", NULL },
	{ "words\n", "gpt-2", NULL },
	{ "digits\nwords\n", "smollm", NULL },
};

struct gguf_token {
	const char *text; /* NULL: none */
	size_t n;
	int type;
	double score;
};

struct gguf_vocab {
	const struct gguf_vocabulary *v;
	const json_t *root, *model;
	struct gguf_token *token; /* [v->rows] */
	bool byte_level;
};

static const char *word_of(const json_t *o, const char *key)
{
	const char *word = json_string_value(json_object_get(o, key));

	return word ? word : "";
}

/* Appends one line for a pre-tokenizer, as pre_tokenizers has them. */
static void describe_step(const json_t *step, struct buf *to)
{
	const char *type = word_of(step, "type"), *behaviour = word_of(step, "behavior");
	const json_t *regex = json_object_get(json_object_get(step, "pattern"), "Regex"), *item;
	const bool inverted = json_is_true(json_object_get(step, "invert"));
	size_t i;

	json_array_foreach(json_object_get(step, "pretokenizers"), i, item)
		describe_step(item, to);
	if (!strcmp(type, "Split") && !strcmp(behaviour, inverted ? "Removed" : "Isolated"))
		buf_addf(to, "split %s\n", regex ? json_string_value(regex) : "");
	else if (!strcmp(type, "Digits") && json_is_true(json_object_get(step, "individual_digits")))
		buf_adds(to, "digits\n");
	else if (!strcmp(type, "ByteLevel"))
		buf_adds(to, json_is_false(json_object_get(step, "use_regex")) ? "bytes\n" : "words\n");
	else if (strcmp(type, "Sequence"))
		buf_addf(to, "%s\n", type);
}

/* Returns the name of the pre-tokenizer; NULL: it has none. */
static const char *name_pre_tokenizer(const struct gguf_vocab *g)
{
	const bool ignores = json_is_true(json_object_get(g->model, "ignore_merges"));
	const char *name = NULL;
	struct buf steps;

	buf_init(&steps, TOKENIZER_BYTES_MAX);
	describe_step(json_object_get(g->root, "pre_tokenizer"), &steps);
	for (size_t i = 0; steps.data && i < sizeof(pre_tokenizers) / sizeof(pre_tokenizers[0]); i++)
		if (strlen(pre_tokenizers[i].steps) == steps.len &&
		    !memcmp(pre_tokenizers[i].steps, steps.data, steps.len))
			name = ignores && pre_tokenizers[i].when_ignoring ? pre_tokenizers[i].when_ignoring
									  : pre_tokenizers[i].name;
	buf_done(&steps);
	return name;
}

static struct gguf_token *token_at(const struct gguf_vocab *g, const json_t *id)
{
	const json_int_t i = json_is_integer(id) ? json_integer_value(id) : -1;

	return i >= 0 && i < g->v->rows ? &g->token[i] : NULL;
}

static int refuse_rows(const struct gguf_vocab *g, const char *token, struct err *err)
{
	return err_set(err, ERR_USAGE, "%.200s/tokenizer.json: '%.60s' is beyond the %lld rows of the model's table",
		       g->v->folder, token, (long long)g->v->rows);
}

/* Fills the tokens from vocabulary and added tokens. */
static int read_gguf_tokens(struct gguf_vocab *g, struct err *err)
{
	const char *unknown = word_of(g->model, "unk_token"), *text;
	struct gguf_token *t;
	json_t *id, *added;
	size_t i;

	json_object_foreach(json_object_get(g->model, "vocab"), text, id) {
		const bool byte = !g->byte_level && strlen(text) == 6 && !strncmp(text, "<0x", 3) && text[5] == '>';

		t = token_at(g, id);
		if (!t)
			return refuse_rows(g, text, err);
		*t = (struct gguf_token){ text, strlen(text), byte ? TYPE_BYTE : TYPE_NORMAL, 0 };
		if (!g->byte_level && !strcmp(text, unknown))
			t->type = TYPE_UNKNOWN;
	}
	json_array_foreach(json_object_get(g->root, "added_tokens"), i, added) {
		t = token_at(g, json_object_get(added, "id"));
		text = word_of(added, "content");
		if (!t)
			return refuse_rows(g, text, err);
		if (t->type != TYPE_UNKNOWN)
			*t = (struct gguf_token){ text, strlen(text),
						  json_is_true(json_object_get(added, "special")) ? TYPE_CONTROL
												  : TYPE_USER_DEFINED,
						  0 };
	}
	return 0;
}

/* Returns a merge as "left right"; its length in *ret_n. */
static const char *merge_text(const json_t *merge, struct buf *space, size_t *ret_n)
{
	if (json_is_string(merge)) {
		*ret_n = json_string_length(merge);
		return json_string_value(merge);
	}
	buf_reset(space);
	buf_addf(space, "%s %s", json_string_value(json_array_get(merge, 0)),
		 json_string_value(json_array_get(merge, 1)));
	*ret_n = space->len;
	return space->data;
}

/* Gives each token that merges make the negative order of its first merge: the earlier, the higher. */
static void score_merges(struct gguf_vocab *g)
{
	const json_t *merges = json_object_get(g->model, "merges"), *merge, *vocab = json_object_get(g->model, "vocab");
	struct buf space, made;
	size_t i, n;

	buf_init(&space, TOKENIZER_BYTES_MAX);
	buf_init(&made, TOKENIZER_BYTES_MAX);
	json_array_foreach(merges, i, merge) {
		const char *text = merge_text(merge, &space, &n), *gap = memchr(text, ' ', n);
		struct gguf_token *t;

		buf_reset(&made);
		buf_add(&made, text, gap ? (size_t)(gap - text) : n);
		buf_adds(&made, gap ? gap + 1 : "");
		buf_addc(&made, '\0');
		t = token_at(g, json_object_get(vocab, made.data));
		if (t && t->score >= 0)
			t->score = -(double)(i + 1);
	}
	buf_done(&space);
	buf_done(&made);
}

static void put_token_lists(struct gguf_keys *k, const struct gguf_vocab *g)
{
	const uint64_t rows = (uint64_t)g->v->rows;
	char unused[40];

	gguf_put_list(k, "tokenizer.ggml.tokens", GGUF_LIST_TEXT, rows);
	for (uint64_t i = 0; i < rows; i++) {
		const struct gguf_token *t = &g->token[i];

		snprintf(unused, sizeof(unused), "[PAD%llu]", (unsigned long long)i);
		gguf_add_text(k, t->text ? t->text : unused, t->text ? t->n : strlen(unused));
	}
	gguf_put_list(k, "tokenizer.ggml.token_type", GGUF_LIST_I32, rows);
	for (uint64_t i = 0; i < rows; i++)
		buf_add_u32le(&k->bytes, (uint32_t)(g->token[i].text ? g->token[i].type : TYPE_UNUSED));
	if (g->byte_level)
		return;
	gguf_put_list(k, "tokenizer.ggml.scores", GGUF_LIST_F32, rows);
	for (uint64_t i = 0; i < rows; i++)
		buf_add_u32le(&k->bytes, float_bits((float)g->token[i].score));
}

static void put_merges(struct gguf_keys *k, const struct gguf_vocab *g)
{
	const json_t *merges = json_object_get(g->model, "merges"), *merge;
	struct buf space;
	size_t i, n;

	buf_init(&space, TOKENIZER_BYTES_MAX);
	gguf_put_list(k, "tokenizer.ggml.merges", GGUF_LIST_TEXT, json_array_size(merges));
	json_array_foreach(merges, i, merge) {
		const char *text = merge_text(merge, &space, &n);

		gguf_add_text(k, text, n);
	}
	buf_done(&space);
}

static void put_token_id(struct gguf_keys *k, const char *key, int64_t token)
{
	if (token >= 0)
		gguf_put_u32(k, key, (uint32_t)token);
}

/* Returns true if a text begins with a space of its own making. */
static bool adds_space(const struct tokenizer *t)
{
	struct token_encoder *e = token_encoder_new(t);
	struct err ignored = ERR_INIT;
	const char *bytes = NULL;
	struct buf tokens;
	size_t n = 0;

	buf_init(&tokens, SIZE_MAX);
	if (!token_encode(e, &(struct token_request){ .text = "a", .n = 1, .tokens = &tokens }, &ignored) &&
	    tokens.len >= sizeof(int32_t))
		bytes = tokenizer_bytes(t, *(const int32_t *)(const void *)tokens.data, false, &n);
	buf_done(&tokens);
	token_encoder_free(e);
	return bytes && n && *bytes == ' ';
}

/* The tokens that begin and end texts and answers, and the template. */
static void put_ends(struct gguf_keys *k, const struct gguf_vocab *g)
{
	const struct chat_ends ends = chat_find_ends(g->v->chat);
	const int64_t given = g->v->generation->n_ends ? g->v->generation->end[0] : -1;
	const int64_t eos = ends.of_tokenizer >= 0 ? ends.of_tokenizer : given;
	const struct tokenizer *t = chat_tokenizer(g->v->chat);
	const int32_t *before;
	const int n = tokenizer_before(t, &before);
	const int64_t bos = n ? before[0] : chat_special_token(g->v->chat, "bos_token");

	put_token_id(k, "tokenizer.ggml.bos_token_id", bos);
	put_token_id(k, "tokenizer.ggml.eos_token_id", eos);
	put_token_id(k, "tokenizer.ggml.unknown_token_id", chat_special_token(g->v->chat, "unk_token"));
	put_token_id(k, "tokenizer.ggml.padding_token_id", chat_special_token(g->v->chat, "pad_token"));
	if (ends.of_template != eos)
		put_token_id(k, "tokenizer.ggml.eot_token_id", ends.of_template);
	gguf_put_bool(k, "tokenizer.ggml.add_bos_token", n > 0);
	gguf_put_bool(k, "tokenizer.ggml.add_eos_token", false);
	if (!g->byte_level)
		gguf_put_bool(k, "tokenizer.ggml.add_space_prefix", adds_space(t));
	if (chat_template_text(g->v->chat))
		gguf_put_text(k, "tokenizer.chat_template", chat_template_text(g->v->chat));
}

/* Adds the kind of the tokenizer, its tokens with types, their merges or scores, and the ends. */
static int put_vocab(struct gguf_keys *k, struct gguf_vocab *g, struct err *err)
{
	const char *pre = g->byte_level ? name_pre_tokenizer(g) : "default";
	int rc;

	if (!pre)
		return err_set(err, ERR_USAGE,
			       "%.200s/tokenizer.json: pre_tokenizer: expected that of GPT-2, GPT-4o, Llama 3, Qwen, "
			       "SmolLM or DeepSeek V3, which readers of GGUF know by a name",
			       g->v->folder);
	rc = read_gguf_tokens(g, err);
	if (rc)
		return rc;
	gguf_put_text(k, "tokenizer.ggml.model", g->byte_level ? "gpt2" : "llama");
	gguf_put_text(k, "tokenizer.ggml.pre", pre);
	if (!g->byte_level)
		score_merges(g);
	put_token_lists(k, g);
	if (g->byte_level)
		put_merges(k, g);
	put_ends(k, g);
	return 0;
}

int gguf_put_tokenizer(struct gguf_keys *k, const struct gguf_vocabulary *v, struct err *err)
{
	struct gguf_vocab g = { .v = v };
	char path[4200];
	json_t *root = NULL;
	struct buf text;
	int rc;

	buf_init(&text, TOKENIZER_BYTES_MAX);
	rc = file_join(path, sizeof(path), v->folder, "tokenizer.json") ? file_load(&text, path, err) : ERR_USAGE;
	if (!rc)
		root = json_loadb(text.data ? text.data : "", text.len, 0, NULL);
	if (!rc && !root)
		rc = err_set(err, ERR_USAGE, "%.300s: is not JSON", path);
	buf_done(&text);
	g.root = root;
	g.model = json_object_get(root, "model");
	g.byte_level = !json_is_true(json_object_get(g.model, "byte_fallback"));
	g.token = mem_array((size_t)v->rows, sizeof(*g.token));
	if (!rc)
		rc = put_vocab(k, &g, err);
	free(g.token);
	json_decref(root);
	return rc;
}
