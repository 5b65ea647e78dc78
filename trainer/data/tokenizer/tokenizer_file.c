/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_file.c: reads tokenizer.json, or GPT-2's vocab.json and merges.txt. Byte-level files write each byte as a
 * printable character: bytes printable in Latin-1 as themselves, the others in order as U+0100 and up. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/file.h"
#include "tracker/base/sha256.h"
#include "tracker/base/utf8.h"
#include "tracker/mem/mem.h"
#include "trainer/data/tokenizer/tokenizer_encode.h"

#define FILE_BYTES_MAX ((size_t)1 << 28)
#define SHIFTED 0x100 /* first of the characters that represent the unprintable bytes */
#define CONTENT_MAX 64
#define TOKENIZER_JSON "tokenizer.json"
#define GPT2_WORDS "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define METASPACE "\xe2\x96\x81"

struct tokenizer_reader {
	struct bpe *b;
	const char *folder;
	int16_t byte_of[SHIFTED * 2]; /* by character; -1: represents no byte */
	struct err *err;
};

/* Refuses a part of tokenizer.json. */
__attribute__((format(printf, 2, 3))) static int refuse_part(const struct tokenizer_reader *r, const char *fmt, ...)
{
	struct buf text;
	va_list ap;

	buf_init(&text, 1000);
	va_start(ap, fmt);
	buf_addvf(&text, fmt, ap);
	va_end(ap);
	err_set(r->err, ERR_USAGE, "%.300s/" TOKENIZER_JSON ": %.400s", r->folder, text.data ? text.data : "");
	buf_done(&text);
	return ERR_USAGE;
}

static const char *read_text(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static bool read_flag(const json_t *o, const char *key, bool missing)
{
	const json_t *v = json_object_get(o, key);

	return json_is_boolean(v) ? json_is_true(v) : missing;
}

/* Refuses a replacement or prefix that would make texts too large. */
static int check_content(const struct tokenizer_reader *r, const char *text)
{
	return text && strlen(text) > CONTENT_MAX ? refuse_part(r, "content: expected at most %d bytes", CONTENT_MAX)
						  : 0;
}

static bool is_type(const json_t *o, const char *type)
{
	const char *found = read_text(o, "type");

	return found && !strcmp(found, type);
}

static struct vocab_piece copy_piece(struct bpe *b, const char *bytes, size_t n)
{
	char *copy = arena_alloc(b->arena, n + 1);

	memcpy(copy, bytes, n);
	return (struct vocab_piece){ copy, (uint32_t)n };
}

/* ---- vocabulary ---- */

static void map_characters(struct tokenizer_reader *r)
{
	int next = SHIFTED;

	memset(r->byte_of, -1, sizeof(r->byte_of));
	for (int i = 0; i < 256; i++) {
		bool prints = (i > 32 && i < 127) || (i > 160 && i != 173);

		r->byte_of[prints ? i : next++] = (int16_t)i;
	}
}

/* Converts characters to the bytes that they represent, in the arena. False: a character represents no byte. */
static bool map_to_bytes(const struct tokenizer_reader *r, const char *text, size_t n, struct vocab_piece *ret)
{
	const unsigned char *u = (const unsigned char *)text;
	char *bytes = arena_alloc(r->b->arena, n + 1);

	*ret = (struct vocab_piece){ bytes, 0 };
	for (size_t at = 0; at < n; at += 1 + (u[at] >= 0x80)) {
		unsigned code = u[at] < 0x80 ? u[at] : (u[at] & 0x1Fu) << 6 | (at + 1 < n ? u[at + 1] & 0x3Fu : 0);

		if (u[at] >= 0xE0 || code >= SHIFTED * 2 || r->byte_of[code] < 0)
			return false;
		bytes[ret->n++] = (char)r->byte_of[code];
	}
	return true;
}

/* Returns a text of the file as the bytes of a token: of a byte-level one if it represents bytes. */
static struct vocab_piece read_piece(const struct tokenizer_reader *r, const char *text, size_t n, bool *ret_mapped)
{
	struct vocab_piece p;

	*ret_mapped = !r->b->byte_level || map_to_bytes(r, text, n, &p);
	return r->b->byte_level && *ret_mapped ? p : copy_piece(r->b, text, n);
}

static int add_vocab_token(struct tokenizer_reader *r, const char *text, const json_t *id, const char *file)
{
	json_int_t v = json_is_integer(id) ? json_integer_value(id) : -1;
	struct bpe *b = r->b;
	bool mapped;
	struct vocab_piece p;

	if (v < 0 || v >= b->vocab || b->pieces[v].bytes)
		return err_set(r->err, ERR_USAGE,
			       "%.300s/%s: token '%.60s' has number %lld: expected unique numbers from 0 to %d",
			       r->folder, file, text, (long long)v, b->vocab - 1);
	p = read_piece(r, text, strlen(text), &mapped);
	b->pieces[v] = p;
	if (mapped)
		bpe_index(b, (int32_t)v);
	if (!strcmp(text, "<|endoftext|>"))
		b->separator = (int32_t)v;
	return 0;
}

/* Reads the tokens of the vocabulary, with room for those that are added, and finds the tokens of bytes. */
static int read_vocab(struct tokenizer_reader *r, json_t *vocab, const json_t *added, const char *file)
{
	json_int_t most = -1;
	const json_t *id, *a;
	const char *key;
	size_t i;
	int rc = 0;

	json_object_foreach(vocab, key, id)
		most = json_integer_value(id) > most ? json_integer_value(id) : most;
	json_array_foreach(added, i, a) {
		json_int_t v = json_integer_value(json_object_get(a, "id"));

		most = v > most ? v : most;
	}
	if (!json_is_object(vocab) || most < 0 || most >= VOCAB_MAX)
		return err_set(r->err, ERR_USAGE, "%.300s/%s: the largest token is %lld: expected 0 to %d", r->folder,
			       file, (long long)most, VOCAB_MAX - 1);
	bpe_allocate(r->b, (int32_t)most + 1);
	json_object_foreach(vocab, key, id)
		if (!rc)
			rc = add_vocab_token(r, key, id, file);
	for (int c = 0; !rc && c < 256 && r->b->byte_level; c++)
		r->b->of_byte[c] = bpe_find(r->b, &(char){ (char)c }, 1);
	return rc;
}

/* Adds the merge of two texts. Returns -1: one of them, or both joined, is no token. */
static int add_merge(struct tokenizer_reader *r, const char *left, size_t n_left, const char *right, size_t n_right)
{
	struct bpe *b = r->b;
	size_t space = strlen(METASPACE);
	bool mapped[2];
	struct vocab_piece pair[2] = { read_piece(r, left, n_left, &mapped[0]),
				       read_piece(r, right, n_right, &mapped[1]) };
	char *both = arena_alloc(b->arena, pair[0].n + pair[1].n + 1);
	struct merge m;

	if (!mapped[0] || !mapped[1] || !pair[0].n || !pair[1].n)
		return -1;
	memcpy(both, pair[0].bytes, pair[0].n);
	memcpy(both + pair[0].n, pair[1].bytes, pair[1].n);
	m = (struct merge){ bpe_find(b, pair[0].bytes, pair[0].n), bpe_find(b, pair[1].bytes, pair[1].n),
			    bpe_find(b, both, pair[0].n + pair[1].n) };
	if (m.left < 0 || m.right < 0 || m.to < 0)
		return -1;
	merges_add(b->merges, &m);
	if (pair[1].n >= space && !memcmp(pair[1].bytes, METASPACE, space) &&
	    !(pair[0].n >= space && !memcmp(pair[0].bytes + pair[0].n - space, METASPACE, space)))
		b->joins_space[(unsigned char)pair[0].bytes[pair[0].n - 1]] = true;
	return 0;
}

/* Adds a merge "A B", or the pair of both. */
static int add_json_merge(struct tokenizer_reader *r, const json_t *merge)
{
	const char *left = json_string_value(merge), *right = left ? strchr(left, ' ') : NULL;
	const json_t *pair[2] = { json_array_get(merge, 0), json_array_get(merge, 1) };

	if (left)
		return right ? add_merge(r, left, (size_t)(right - left), right + 1, strlen(right + 1)) : -1;
	return json_is_string(pair[0]) && json_is_string(pair[1])
		       ? add_merge(r, json_string_value(pair[0]), json_string_length(pair[0]),
				   json_string_value(pair[1]), json_string_length(pair[1]))
		       : -1;
}

/* ---- the model ---- */

static void find_byte_tokens(struct bpe *b)
{
	for (int c = 0; c < 256; c++) {
		char name[8];

		snprintf(name, sizeof(name), "<0x%02X>", (unsigned)c);
		b->of_byte[c] = bpe_find(b, name, strlen(name));
	}
}

/* Reads the vocabulary and the merges. */
static int read_model(struct tokenizer_reader *r, const json_t *model, const json_t *added)
{
	static const char *const affixes[] = { "continuing_subword_prefix", "end_of_word_suffix" };
	const char *type = read_text(model, "type"), *unknown = read_text(model, "unk_token");
	const json_t *merges = json_object_get(model, "merges"), *merge;
	struct bpe *b = r->b;
	size_t i;
	int rc;

	if (type ? strcmp(type, "BPE") : !merges)
		return refuse_part(r, "model: type '%.40s' is not supported: expected BPE", type ? type : "");
	if (json_number_value(json_object_get(model, "dropout")) != 0)
		return refuse_part(r, "model: dropout is not supported: set it to null");
	for (i = 0; i < 2; i++)
		if (read_text(model, affixes[i]) && *read_text(model, affixes[i]))
			return refuse_part(r, "model: %s is not supported", affixes[i]);
	b->ignore_merges = read_flag(model, "ignore_merges", false);
	b->fuse_unknown = read_flag(model, "fuse_unk", false);
	rc = read_vocab(r, json_object_get(model, "vocab"), added, TOKENIZER_JSON);
	if (rc)
		return rc;
	b->unknown = unknown ? bpe_find(b, unknown, strlen(unknown)) : -1;
	if (read_flag(model, "byte_fallback", false) && !b->byte_level)
		find_byte_tokens(b);
	b->merges = merges_new();
	json_array_foreach(merges, i, merge)
		if (add_json_merge(r, merge))
			return refuse_part(r,
					   "model: merges: merge %zu: expected two tokens whose concatenation is a "
					   "token too",
					   i);
	return 0;
}

/* ---- normalizers and pre-tokenizers ---- */

static int add_change(struct tokenizer_reader *r, int stage, struct text_change c)
{
	if (r->b->n_changes[stage] == CHANGES_MAX)
		return refuse_part(r, "has more than %d normalizers", CHANGES_MAX);
	r->b->change[stage][r->b->n_changes[stage]++] = c;
	return 0;
}

static int add_prefix(struct tokenizer_reader *r, int stage, enum text_change_kind kind, const char *text)
{
	return add_change(
		r, stage,
		(struct text_change){ .kind = kind, .content = arena_strdup(r->b->arena, text), .n = strlen(text) });
}

static int open_pattern(struct tokenizer_reader *r, const json_t *pattern, struct text_pattern **ret)
{
	const char *text = read_text(pattern, "String"), *regex = read_text(pattern, "Regex");
	struct err why = ERR_INIT;

	if (!text && !regex)
		return refuse_part(r, "pattern: expected a String or a Regex");
	return text_pattern_new(ret, text ? text : regex, text != NULL, &why) ? refuse_part(r, "%s", why.text) : 0;
}

static int add_replacement(struct tokenizer_reader *r, int stage, const json_t *pattern, const char *content)
{
	struct text_change c = { .kind = CHANGE_REPLACE };
	int rc = check_content(r, content);

	if (!rc)
		rc = open_pattern(r, pattern, &c.pattern);
	if (rc)
		return rc;
	c.content = arena_strdup(r->b->arena, content ? content : "");
	c.n = strlen(c.content);
	rc = add_change(r, stage, c);
	if (rc)
		text_pattern_free(c.pattern);
	return rc;
}

/* Reads a member that is one object or a Sequence of them. */
static int read_each(struct tokenizer_reader *r, const json_t *part, const char *list,
		     int (*read_one)(struct tokenizer_reader *r, const json_t *o))
{
	const json_t *item;
	size_t i;
	int rc = 0;

	if (!part || json_is_null(part))
		return 0;
	if (!is_type(part, "Sequence"))
		return read_one(r, part);
	json_array_foreach(json_object_get(part, list), i, item)
		if (!rc)
			rc = read_each(r, item, list, read_one);
	return rc;
}

static int read_normalizer(struct tokenizer_reader *r, const json_t *o)
{
	static const char *const forms[] = {
		[CHANGE_NFC] = "NFC", [CHANGE_NFD] = "NFD", [CHANGE_NFKC] = "NFKC", [CHANGE_NFKD] = "NFKD"
	};
	const char *type = read_text(o, "type"), *prefix = read_text(o, "prepend");

	for (int k = 0; type && k <= CHANGE_NFKD; k++)
		if (!strcmp(type, forms[k]))
			return add_change(r, 0, (struct text_change){ .kind = (enum text_change_kind)k });
	if (is_type(o, "Replace"))
		return add_replacement(r, 0, json_object_get(o, "pattern"), read_text(o, "content"));
	if (is_type(o, "Prepend") && prefix)
		return check_content(r, prefix) ? ERR_USAGE : add_prefix(r, 0, CHANGE_PREPEND, prefix);
	return refuse_part(r,
			   "normalizer: type '%.40s' is not supported: expected NFC, NFD, NFKC, NFKD, Replace, Prepend "
			   "or Sequence",
			   type ? type : "");
}

static int add_split(struct tokenizer_reader *r, struct word_split s)
{
	struct bpe *b = r->b;

	if (b->byte_level || b->n_splits == SPLITS_MAX) {
		text_pattern_free(s.pattern);
		return refuse_part(r, b->byte_level ? "pre_tokenizer: nothing is supported after ByteLevel"
						    : "pre_tokenizer: too many splits");
	}
	b->split[b->n_splits++] = s;
	return 0;
}

/* Adds a split by a pattern of our own. */
static int add_known_split(struct tokenizer_reader *r, const char *pattern, enum split_behaviour behaviour)
{
	struct word_split s = { .behaviour = behaviour };
	struct err why = ERR_INIT;

	if (text_pattern_new(&s.pattern, pattern, false, &why))
		return refuse_part(r, "%s", why.text);
	return add_split(r, s);
}

static int read_split(struct tokenizer_reader *r, const json_t *o)
{
	static const char *const names[] = { [SPLIT_REMOVED] = "Removed",
					     [SPLIT_ISOLATED] = "Isolated",
					     [SPLIT_WITH_PREVIOUS] = "MergedWithPrevious",
					     [SPLIT_WITH_NEXT] = "MergedWithNext",
					     [SPLIT_CONTIGUOUS] = "Contiguous" };
	const char *behaviour = read_text(o, "behavior");
	struct word_split s = { .invert = read_flag(o, "invert", false) };
	int rc;

	for (int k = SPLIT_REMOVED; k <= SPLIT_CONTIGUOUS; k++)
		if (behaviour && !strcmp(behaviour, names[k])) {
			s.behaviour = (enum split_behaviour)k;
			rc = open_pattern(r, json_object_get(o, "pattern"), &s.pattern);
			return rc ? rc : add_split(r, s);
		}
	return refuse_part(r, "pre_tokenizer: Split: behavior '%.40s' is not supported", behaviour ? behaviour : "");
}

static int read_metaspace(struct tokenizer_reader *r, const json_t *o)
{
	const char *space = read_text(o, "replacement"), *scheme = read_text(o, "prepend_scheme");
	json_t *pattern;
	int rc;

	if (!space || strcmp(space, METASPACE))
		return refuse_part(r, "pre_tokenizer: Metaspace: replacement: expected U+2581");
	if (r->b->n_splits)
		return refuse_part(r, "pre_tokenizer: Metaspace is supported in the first place alone");
	if (!scheme) /* the older form */
		scheme = read_flag(o, "add_prefix_space", true) ? "always" : "never";
	pattern = json_pack("{s:s}", "String", " ");
	rc = add_replacement(r, 1, pattern, METASPACE);
	json_decref(pattern);
	if (!rc && strcmp(scheme, "never"))
		rc = add_prefix(r, 1, strcmp(scheme, "first") ? CHANGE_BEGIN : CHANGE_BEGIN_FIRST, METASPACE);
	return rc || !read_flag(o, "split", true) ? rc : add_known_split(r, METASPACE, SPLIT_WITH_NEXT);
}

/* Adds the splits and changes of a pre-tokenizer. */
static int read_pre_tokenizer(struct tokenizer_reader *r, const json_t *o)
{
	const char *type = read_text(o, "type");
	int rc = 0;

	if (is_type(o, "Split"))
		return read_split(r, o);
	if (is_type(o, "Digits"))
		return add_known_split(r, "\\p{N}",
				       read_flag(o, "individual_digits", false) ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS);
	if (is_type(o, "Metaspace"))
		return read_metaspace(r, o);
	if (!is_type(o, "ByteLevel"))
		return refuse_part(r,
				   "pre_tokenizer: type '%.40s' is not supported: expected ByteLevel, Split, Digits, "
				   "Metaspace or Sequence",
				   type ? type : "");
	if (read_flag(o, "add_prefix_space", true) && r->b->n_splits)
		return refuse_part(r,
				   "pre_tokenizer: ByteLevel: add_prefix_space is supported in the first place alone");
	if (read_flag(o, "add_prefix_space", true))
		rc = add_prefix(r, 1, CHANGE_BEGIN, " ");
	if (!rc && read_flag(o, "use_regex", true))
		rc = add_known_split(r, GPT2_WORDS, SPLIT_ISOLATED);
	r->b->byte_level = true;
	return rc;
}

/* ---- added tokens, post-processors, decoders ---- */

/* Returns the text of an added token as it is searched: in the normalised text, itself normalised. */
static int normalize_added(struct tokenizer_reader *r, struct added_token *a)
{
	struct text_changing changing;
	struct text_view v = { .text = a->text.bytes, .n = a->text.n, .first = true };
	struct text_matcher *matcher = text_matcher_new();
	int rc = 0;

	text_changing_init(&changing, matcher);
	for (int i = 0; !rc && i < r->b->n_changes[0]; i++)
		rc = text_change_apply(&r->b->change[0][i], &changing, &v, r->err);
	if (!rc)
		a->text = copy_piece(r->b, v.text, v.n);
	text_changing_done(&changing);
	text_matcher_free(matcher);
	return rc;
}

/* Adds a token to the set that its text is searched in. */
static int read_added_token(struct tokenizer_reader *r, const json_t *o)
{
	const char *content = read_text(o, "content");
	json_int_t id = json_is_integer(json_object_get(o, "id")) ? json_integer_value(json_object_get(o, "id")) : -1;
	bool special = read_flag(o, "special", false), normalized = read_flag(o, "normalized", !special);
	struct added_set *set = &r->b->added[normalized];
	struct added_token a;
	int rc;

	if (!content || !*content || id < 0 || id >= r->b->vocab)
		return refuse_part(r, "added_tokens: '%.60s' has no text, or number %lld", content ? content : "",
				   (long long)id);
	a = (struct added_token){ .text = copy_piece(r->b, content, strlen(content)),
				  .id = (int32_t)id,
				  .lstrip = read_flag(o, "lstrip", false),
				  .rstrip = read_flag(o, "rstrip", false),
				  .single_word = read_flag(o, "single_word", false),
				  .special = special };
	if (!r->b->pieces[id].bytes)
		r->b->pieces[id] = a.text;
	if (!strcmp(content, "<|endoftext|>"))
		r->b->separator = a.id;
	rc = normalized ? normalize_added(r, &a) : 0;
	if (!rc && a.text.n) {
		mem_push(&set->item, &set->n, &set->cap, a);
		set->first[(unsigned char)a.text.bytes[0]] = true;
	}
	return rc;
}

static int compare_added(const void *a, const void *b)
{
	const struct vocab_piece *x = &((const struct added_token *)a)->text,
				 *y = &((const struct added_token *)b)->text;
	int order = memcmp(x->bytes, y->bytes, x->n < y->n ? x->n : y->n);

	return order ? order : (x->n > y->n) - (x->n < y->n);
}

static int add_frame_tokens(struct tokenizer_reader *r, const json_t *special, const char *name)
{
	struct token_frame *to = &r->b->before;
	const json_t *ids = json_object_get(json_object_get(special, name), "ids"), *id;
	size_t i;

	if (!json_is_array(ids))
		return refuse_part(r, "post_processor: special_tokens: '%.60s' is missing", name);
	json_array_foreach(ids, i, id) {
		if (to->n == FRAME_MAX || json_integer_value(id) < 0 || json_integer_value(id) >= r->b->vocab)
			return refuse_part(r,
					   "post_processor: '%.60s': more than %d tokens, or one beyond the vocabulary",
					   name, FRAME_MAX);
		to->token[to->n++] = (int32_t)json_integer_value(id);
	}
	return 0;
}

/* Adds the tokens that a template puts in front of a text. */
static int read_post_processor(struct tokenizer_reader *r, const json_t *o)
{
	const char *type = read_text(o, "type");
	const json_t *piece;
	size_t i;
	int rc = 0;

	if (is_type(o, "ByteLevel")) /* changes offsets alone */
		return 0;
	if (!is_type(o, "TemplateProcessing"))
		return refuse_part(r,
				   "post_processor: type '%.40s' is not supported: expected TemplateProcessing, "
				   "ByteLevel or Sequence",
				   type ? type : "");
	json_array_foreach(json_object_get(o, "single"), i, piece) {
		const char *name = read_text(json_object_get(piece, "SpecialToken"), "id");

		if (!name || rc)
			break;
		rc = add_frame_tokens(r, json_object_get(o, "special_tokens"), name);
	}
	return rc;
}

/* Replaces a text in what is shown of each token. */
static void show_replaced(struct bpe *b, const char *from, const char *to)
{
	size_t n_from = strlen(from), n_to = strlen(to);

	for (int32_t i = 0; n_from && i < b->vocab; i++) {
		struct vocab_piece *p = &b->shown[i];
		const char *at = p->bytes ? memmem(p->bytes, p->n, from, n_from) : NULL,
			   *end = at ? p->bytes + p->n : NULL;
		char *copy = at ? arena_alloc(b->arena, p->n * (1 + n_to) + 1) : NULL;
		size_t n = 0;

		for (const char *done = p->bytes; copy;
		     done = at + n_from, at = memmem(done, (size_t)(end - done), from, n_from)) {
			size_t before = (size_t)((at ? at : end) - done);

			memcpy(copy + n, done, before);
			n += before;
			if (!at)
				break;
			memcpy(copy + n, to, n_to);
			n += n_to;
		}
		if (copy)
			*p = (struct vocab_piece){ copy, (uint32_t)n };
	}
}

static void show_byte_tokens(struct bpe *b)
{
	for (int c = 0; c < 256; c++) {
		char name[8];
		int32_t token;

		snprintf(name, sizeof(name), "<0x%02X>", (unsigned)c);
		token = bpe_find(b, name, strlen(name));
		if (token >= 0)
			b->shown[token] = copy_piece(b, &(char){ (char)c }, 1);
	}
}

/* Changes what is shown of the tokens as a decoder would. */
static int read_decoder_part(struct tokenizer_reader *r, const json_t *o)
{
	const char *type = read_text(o, "type"), *text = read_text(json_object_get(o, "pattern"), "String");

	if (is_type(o, "Fuse") || (is_type(o, "ByteLevel") && r->b->byte_level))
		return 0;
	if (is_type(o, "Replace") && text) {
		if (check_content(r, read_text(o, "content")))
			return ERR_USAGE;
		show_replaced(r->b, text, read_text(o, "content") ? read_text(o, "content") : "");
		return 0;
	}
	if (is_type(o, "Metaspace")) {
		const char *scheme = read_text(o, "prepend_scheme");

		show_replaced(r->b, METASPACE, " ");
		r->b->strips_first |= scheme ? strcmp(scheme, "never") != 0 : read_flag(o, "add_prefix_space", true);
		return 0;
	}
	if (is_type(o, "ByteFallback")) {
		show_byte_tokens(r->b);
		return 0;
	}
	text = read_text(o, "content");
	if (is_type(o, "Strip") && text && !strcmp(text, " ") && json_integer_value(json_object_get(o, "start")) <= 1 &&
	    !json_integer_value(json_object_get(o, "stop"))) {
		r->b->strips_first |= json_integer_value(json_object_get(o, "start")) == 1;
		return 0;
	}
	return refuse_part(r,
			   "decoder: '%.40s' is not supported: expected ByteLevel, Replace of a String, ByteFallback, "
			   "Fuse, Strip of one space at the start, Metaspace or Sequence",
			   type ? type : "");
}

/* ---- files ---- */

/* Appends a tokenizer's file, without a byte order mark. ERR_USAGE with errno. */
static int read_tokenizer_file(struct buf *to, const char *folder, const char *name, struct err *err)
{
	char path[4200];
	int rc, why;

	if (!file_join(path, sizeof(path), folder, name))
		return err_set(err, ERR_USAGE, "tokenizer %.300s: the path is too long", folder);
	rc = file_load(to, path, err);
	why = errno;
	if (!rc) {
		buf_consume(to, utf8_mark(to->data ? to->data : "", to->len));
		return file_refuse_pointer(path, to->data, to->len, err);
	}
	if (rc != ERR_USAGE)
		return rc;
	if (why == EFBIG)
		return err_set(err, ERR_USAGE, "%.300s: is larger than the maximum of 256 MiB", path);
	err_set(err, ERR_USAGE,
		"tokenizer %.300s: %s: expected a folder with " TOKENIZER_JSON
		", or with vocab.json and merges.txt, or "
		"the word bytes",
		path, strerror(why));
	errno = why;
	return ERR_USAGE;
}

static int parse_json(const struct buf *text, const char *folder, const char *file, json_t **ret, struct err *err)
{
	json_error_t why;

	*ret = json_loadb(text->data ? text->data : "", text->len, JSON_ALLOW_NUL, &why);
	if (json_is_object(*ret))
		return 0;
	err_set(err, ERR_USAGE, "%.300s/%s:%d: is not a JSON object%s%.80s", folder, file, *ret ? 1 : why.line,
		*ret ? "" : ": ", *ret ? "" : why.text);
	json_decref(*ret);
	*ret = NULL;
	return ERR_USAGE;
}

/* Parses merges.txt: one merge per line, in the order of their rank. */
static int read_merge_lines(struct tokenizer_reader *r, const struct buf *text)
{
	const char *at = text->data, *end = at + text->len;
	int line = 0;

	r->b->merges = merges_new();
	while (at && at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((stop ? stop : end) - at);
		const char *space;

		line++;
		n -= n && at[n - 1] == '\r';
		space = n ? memchr(at, ' ', n) : NULL;
		if (n && !(line == 1 && at[0] == '#') &&
		    (!space || add_merge(r, at, (size_t)(space - at), space + 1, n - (size_t)(space - at) - 1)))
			return err_set(
				r->err, ERR_USAGE,
				"%.300s/merges.txt:%d: expected two tokens of the vocabulary whose concatenation "
				"is a token too",
				r->folder, line);
		at = stop ? stop + 1 : end;
	}
	return 0;
}

/* Reads vocab.json, already in text, and merges.txt: byte-level BPE with GPT-2's words, without added tokens. */
static int read_gpt2_files(struct tokenizer_reader *r, struct buf *text)
{
	struct buf merges;
	json_t *vocab;
	int rc = parse_json(text, r->folder, "vocab.json", &vocab, r->err);

	if (rc)
		return rc;
	buf_init(&merges, FILE_BYTES_MAX);
	rc = add_known_split(r, GPT2_WORDS, SPLIT_ISOLATED);
	r->b->byte_level = true;
	if (!rc)
		rc = read_vocab(r, vocab, NULL, "vocab.json");
	for (int c = 0; !rc && c < 256; c++)
		if (r->b->of_byte[c] < 0)
			rc = err_set(r->err, ERR_USAGE, "%.300s/vocab.json: byte %d has no token", r->folder, c);
	if (!rc)
		rc = read_tokenizer_file(&merges, r->folder, "merges.txt", r->err);
	if (!rc)
		rc = read_merge_lines(r, &merges);
	r->b->shown = r->b->pieces;
	text->max = 2 * FILE_BYTES_MAX;
	buf_add(text, merges.data, merges.len); /* for the hash */
	buf_done(&merges);
	json_decref(vocab);
	return rc;
}

/* Reads tokenizer.json. Pre-tokenizers come before the vocabulary, whose texts depend on ByteLevel. */
static int read_tokenizer_json(struct tokenizer_reader *r, const json_t *root)
{
	const json_t *added = json_object_get(root, "added_tokens"), *item;
	struct bpe *b = r->b;
	size_t i;
	int rc = read_each(r, json_object_get(root, "normalizer"), "normalizers", read_normalizer);

	if (!rc)
		rc = read_each(r, json_object_get(root, "pre_tokenizer"), "pretokenizers", read_pre_tokenizer);
	if (!rc)
		rc = read_model(r, json_object_get(root, "model"), added);
	json_array_foreach(added, i, item)
		if (!rc)
			rc = read_added_token(r, item);
	for (i = 0; i < 2; i++)
		if (b->added[i].n)
			qsort(b->added[i].item, b->added[i].n, sizeof(*b->added[i].item), compare_added);
	if (!rc)
		rc = read_each(r, json_object_get(root, "post_processor"), "processors", read_post_processor);
	if (rc)
		return rc;
	b->shown = b->byte_level ? b->pieces : arena_array(b->arena, (size_t)b->vocab, sizeof(*b->shown));
	if (!b->byte_level)
		memcpy(b->shown, b->pieces, (size_t)b->vocab * sizeof(*b->shown));
	if (b->separator < 0 && b->before.n)
		b->separator = b->before.token[0];
	if (!b->byte_level && !b->ignore_merges)
		b->space = METASPACE;
	return read_each(r, json_object_get(root, "decoder"), "decoders", read_decoder_part);
}

/* Sets the separator from tokenizer_config.json, if there is one that names it. */
static void find_separator(struct bpe *b, const char *folder)
{
	static const char *const keys[] = { "bos_token", "eos_token" };
	struct err ignored;
	struct buf text;
	json_t *root;

	buf_init(&text, FILE_BYTES_MAX);
	if (b->separator < 0 && !read_tokenizer_file(&text, folder, "tokenizer_config.json", &ignored) &&
	    !parse_json(&text, folder, "tokenizer_config.json", &root, &ignored)) {
		for (size_t i = 0; i < 2 && b->separator < 0; i++) {
			const json_t *token = json_object_get(root, keys[i]);
			const char *name =
				json_is_object(token) ? read_text(token, "content") : json_string_value(token);

			if (name)
				b->separator = bpe_token(b, name);
		}
		json_decref(root);
	}
	buf_done(&text);
}

/* Returns true if an added token could span a place between a letter and a space. */
static bool spans_cuts(const struct added_set *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->item[i].lstrip || s->item[i].rstrip || memchr(s->item[i].text.bytes, ' ', s->item[i].text.n))
			return true;
	return false;
}

/* Finds out whether texts may be cut between a letter and a space: whether the parts of a sample have its tokens, at
 * each such place. */
static void try_cuts(struct bpe *b, struct err *err)
{
	static const char sample[] =
		"The quick brown fox jumps over a lazy dog and I saw it all in 1999 on We Are one Way "
		"to say: it's I'll can't don't stop me Now or THEN";
	struct bpe_encoder *e = bpe_encoder_new(b);
	struct token_request r = { .text = sample, .n = strlen(sample) };
	struct buf whole, parts;

	buf_init(&whole, SIZE_MAX);
	buf_init(&parts, SIZE_MAX);
	b->cuts = !spans_cuts(&b->added[0]) && !spans_cuts(&b->added[1]);
	r.tokens = &whole;
	if (bpe_encode(e, &r, err))
		b->cuts = false;
	for (size_t at = strlen(sample); b->cuts && (at = bpe_cut(b, sample, at)) > 0;) {
		struct token_request part[2] = { { sample, at, false, &parts, NULL },
						 { sample + at, strlen(sample) - at, true, &parts, NULL } };

		buf_reset(&parts);
		b->cuts = !bpe_encode(e, &part[0], err) && !bpe_encode(e, &part[1], err) && parts.len == whole.len &&
			  !memcmp(parts.data, whole.data, whole.len);
	}
	buf_done(&whole);
	buf_done(&parts);
	bpe_encoder_free(e);
}

void bpe_close(struct bpe *b)
{
	if (!b)
		return;
	for (int i = 0; i < b->n_splits; i++)
		text_pattern_free(b->split[i].pattern);
	for (int s = 0; s < 2; s++) {
		for (int i = 0; i < b->n_changes[s]; i++)
			text_pattern_free(b->change[s][i].pattern);
		free(b->added[s].item);
	}
	merges_free(b->merges);
	arena_free(b->arena);
}

int bpe_open(struct bpe **ret, const char *folder, struct err *err)
{
	struct arena *arena = arena_new();
	struct tokenizer_reader r = { .b = arena_alloc(arena, sizeof(*r.b)), .folder = folder, .err = err };
	struct err why = ERR_INIT;
	json_t *root = NULL;
	struct buf text;
	int rc;

	buf_init(&text, FILE_BYTES_MAX);
	r.b->arena = arena;
	r.b->separator = r.b->unknown = -1;
	memset(r.b->of_byte, -1, sizeof(r.b->of_byte));
	map_characters(&r);
	rc = read_tokenizer_file(&text, folder, TOKENIZER_JSON, &why);
	if (rc && errno == ENOENT) {
		buf_reset(&text);
		rc = read_tokenizer_file(&text, folder, "vocab.json", err);
		if (!rc)
			rc = read_gpt2_files(&r, &text);
	} else if (rc) {
		err_set(err, rc, "%s", why.text);
	} else {
		rc = parse_json(&text, folder, TOKENIZER_JSON, &root, err);
		if (!rc)
			rc = read_tokenizer_json(&r, root);
	}
	if (root)
		json_decref(root);
	if (!rc) {
		sha256_hex(text.data, text.len, r.b->hash);
		find_separator(r.b, folder);
		try_cuts(r.b, &why);
		*ret = r.b;
	} else {
		bpe_close(r.b);
	}
	buf_done(&text);
	return rc;
}
