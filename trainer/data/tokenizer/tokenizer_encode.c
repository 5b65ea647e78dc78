/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_encode.c: a text passes through these stages, each called by the one before for every part:
 * valid UTF-8 -> between added tokens -> normalised -> between normalised added tokens -> words -> merges. */
#include "trainer/data/tokenizer/tokenizer_encode.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "tracker/base/utf8.h"
#include "tracker/mem/mem.h"

#define GROWTH_MAX 32 /* of a normalised text; normal forms alone grow it 11 times at most */

struct bpe_encoder {
	const struct bpe *b;
	struct merger *merger;
	struct text_matcher *matcher;
	struct text_changing changing[2]; /* by stage */
	const struct token_request *request;
	struct text_view view; /* the text that words are made of */
};

/* ---- words to tokens ---- */

static size_t fill_bytes(const struct bpe *b, const char *bytes, size_t n, int32_t *ret)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		int32_t token = b->of_byte[(unsigned char)bytes[i]];

		if (token < 0)
			token = b->unknown;
		if (token >= 0)
			ret[count++] = token;
	}
	return count;
}

/* Returns the tokens of the bytes of a character, or 0 if one has none. */
static size_t fall_back_to_bytes(const struct bpe *b, const char *bytes, size_t n, int32_t *ret)
{
	for (size_t i = 0; i < n; i++) {
		ret[i] = b->of_byte[(unsigned char)bytes[i]];
		if (ret[i] < 0)
			return 0;
	}
	return n;
}

/* Writes the token of each character, or those of its bytes, or the unknown token. */
static size_t fill_characters(const struct bpe *b, const char *bytes, size_t n, int32_t *ret)
{
	size_t count = 0, step;
	bool unknown = false; /* one waits to be written, in front of the next known character */

	for (size_t at = 0; at < n; at += step) {
		int32_t token;
		size_t fallen;

		step = utf8_step((const unsigned char *)bytes + at, n - at);
		token = bpe_find(b, bytes + at, step);
		fallen = token < 0 ? fall_back_to_bytes(b, bytes + at, step, ret + count) : 0;
		if (token >= 0) {
			if (unknown)
				ret[count++] = b->unknown;
			unknown = false;
			ret[count++] = token;
		} else if (fallen) {
			count += fallen;
		} else if (b->unknown >= 0) {
			if (unknown && !b->fuse_unknown)
				ret[count++] = b->unknown;
			unknown = true;
		}
	}
	if (unknown)
		ret[count++] = b->unknown;
	return count;
}

static size_t fill_word(void *user, const char *bytes, size_t n, int32_t *ret)
{
	const struct bpe *b = user;
	int32_t whole = b->ignore_merges ? bpe_find(b, bytes, n) : -1;

	if (whole < 0)
		return b->byte_level ? fill_bytes(b, bytes, n, ret) : fill_characters(b, bytes, n, ret);
	*ret = whole;
	return 1;
}

/* Returns the end of the origin of the first n bytes of the view. */
static uint32_t find_origin_end(const struct text_view *v, size_t n)
{
	return !v->origin ? (uint32_t)(v->base + n) : n ? v->origin[n - 1] : (uint32_t)v->base;
}

static void add_ends(struct bpe_encoder *e, struct text_span word, const int32_t *tokens, size_t n)
{
	const struct bpe *b = e->b;
	size_t at = word.begin;

	for (size_t i = 0; i < n; i++) {
		const struct vocab_piece *p = &b->pieces[tokens[i]];
		bool is_byte = !b->byte_level && p->n == 6 && b->shown[tokens[i]].n == 1;
		uint32_t end;

		at += is_byte ? 1 : p->n;
		if (at > word.end || i + 1 == n)
			at = word.end;
		end = find_origin_end(&e->view, at);
		buf_add(e->request->ends, &end, sizeof(end));
	}
}

static int merge_word(struct bpe_encoder *e, struct text_span word, struct err *err)
{
	size_t bytes = word.end - word.begin, n;
	const int32_t *tokens;

	if (bytes > MERGER_WORD_MAX)
		return err_set(err, ERR_USAGE, "a word of %zu bytes: expected at most %zu", bytes, MERGER_WORD_MAX);
	tokens = merger_word(e->merger, e->view.text + word.begin, bytes, &n);
	buf_add(e->request->tokens, tokens, n * sizeof(*tokens));
	if (e->request->ends)
		add_ends(e, word, tokens, n);
	return 0;
}

/* Splits a word in front of each space that no merge joins with the character before. */
static int merge_spaced_words(struct bpe_encoder *e, struct text_span word, struct err *err)
{
	const char *text = e->view.text;
	size_t n = strlen(e->b->space), at = word.begin;
	int rc = 0;

	while (!rc && at < word.end) {
		const char *next = memmem(text + at, word.end - at, e->b->space, n);

		if (!next)
			break;
		at = (size_t)(next - text);
		if (at > word.begin && !e->b->joins_space[(unsigned char)text[at - 1]]) {
			rc = merge_word(e, (struct text_span){ word.begin, at }, err);
			word.begin = at;
		}
		for (; at < word.end && word.end - at >= n && !memcmp(text + at, e->b->space, n); at += n)
			;
	}
	return rc || word.begin == word.end ? rc : merge_word(e, word, err);
}

static int split_word(struct bpe_encoder *e, int stage, struct text_span word, struct err *err);

/* A part of a text that is split: the last one, which the next one may extend. */
struct split_part {
	struct text_span span;
	bool matches, waits;
};

static int flush_split_part(struct bpe_encoder *e, int stage, struct split_part *last, struct err *err)
{
	bool waits = last->waits;

	last->waits = false;
	return waits && last->span.end > last->span.begin ? split_word(e, stage + 1, last->span, err) : 0;
}

static int add_split_part(struct bpe_encoder *e, int stage, struct split_part *last, struct split_part part,
			  struct err *err)
{
	enum split_behaviour how = e->b->split[stage].behaviour;
	bool before = last->matches;
	int rc;

	if (how == SPLIT_REMOVED && part.matches)
		return 0;
	last->matches = part.matches;
	if (last->waits && ((how == SPLIT_WITH_PREVIOUS && part.matches && !before) ||
			    (how == SPLIT_WITH_NEXT && !part.matches && before) ||
			    (how == SPLIT_CONTIGUOUS && part.matches == before))) {
		last->span.end = part.span.end;
		return 0;
	}
	rc = flush_split_part(e, stage, last, err);
	*last = (struct split_part){ part.span, part.matches, true };
	return rc;
}

/* Splits a word by the split of this stage and passes the parts to the next; after the last, merges it. */
static int split_word(struct bpe_encoder *e, int stage, struct text_span word, struct err *err)
{
	const struct word_split *s = &e->b->split[stage];
	struct split_part last = { .waits = false };
	struct pattern_search search = { e->view.text, word };
	struct text_span found;
	bool invert;
	int rc = 0, more = 1;

	if (stage == e->b->n_splits)
		return e->b->space ? merge_spaced_words(e, word, err) : merge_word(e, word, err);
	invert = s->invert;
	while (!rc && search.within.begin < word.end) {
		more = text_pattern_find(s->pattern, e->matcher, &search, &found, err);
		if (more < 0)
			return more;
		if (!more)
			found = (struct text_span){ word.end, word.end };
		if (found.begin > search.within.begin)
			rc = add_split_part(e, stage, &last,
					    (struct split_part){ { search.within.begin, found.begin }, invert, true },
					    err);
		if (!rc && more)
			rc = add_split_part(e, stage, &last, (struct split_part){ found, !invert, true }, err);
		search.within.begin = found.end;
	}
	return rc ? rc : flush_split_part(e, stage, &last, err);
}

/* ---- added tokens ---- */

static bool is_word_character(const char *text, size_t n)
{
	static const utf8proc_category_t word[] = { UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LL, UTF8PROC_CATEGORY_LT,
						    UTF8PROC_CATEGORY_LM, UTF8PROC_CATEGORY_LO, UTF8PROC_CATEGORY_MN,
						    UTF8PROC_CATEGORY_MC, UTF8PROC_CATEGORY_ME, UTF8PROC_CATEGORY_ND,
						    UTF8PROC_CATEGORY_NL, UTF8PROC_CATEGORY_PC };
	utf8proc_int32_t code;
	bool is = false;

	if (utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, &code) < 1)
		return false;
	for (size_t i = 0; i < sizeof(word) / sizeof(*word); i++)
		is |= utf8proc_category(code) == word[i];
	return is;
}

/* Bytes of the White_Space character at text; 0: another character. */
static size_t measure_space(const char *text, size_t n)
{
	utf8proc_int32_t code;
	utf8proc_ssize_t bytes = utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, &code);
	utf8proc_category_t c = bytes > 0 ? utf8proc_category(code) : UTF8PROC_CATEGORY_CN;
	bool is = c == UTF8PROC_CATEGORY_ZS || c == UTF8PROC_CATEGORY_ZL || c == UTF8PROC_CATEGORY_ZP;

	return bytes > 0 && (is || (code >= 9 && code <= 13) || code == 0x85) ? (size_t)bytes : 0;
}

/* Returns the first byte of the character that ends in front of `at`. */
static size_t step_back(const char *text, size_t at)
{
	while (at && ((unsigned char)text[--at] & 0xC0) == 0x80)
		;
	return at;
}

static bool stands_alone(const struct text_view *v, struct text_span at)
{
	size_t before = step_back(v->text, at.begin);

	return (!at.begin || !is_word_character(v->text + before, at.begin - before)) &&
	       (at.end == v->n || !is_word_character(v->text + at.end, v->n - at.end));
}

/* Returns the first item of [low, high), which agree in their first k bytes, whose byte k is at least c. */
static size_t find_first_with(const struct added_set *s, struct text_span range, size_t k, int c)
{
	while (range.begin < range.end) {
		size_t middle = (range.begin + range.end) / 2;
		const struct vocab_piece *p = &s->item[middle].text;

		if (k < p->n && (unsigned char)p->bytes[k] >= c)
			range.end = middle;
		else
			range.begin = middle + 1;
	}
	return range.begin;
}

/* Returns the longest token of the set at text; NULL: none. */
static const struct added_token *match_added_token(const struct added_set *s, const char *text, size_t n)
{
	struct text_span range = { 0, s->n };
	const struct added_token *longest = NULL;

	for (size_t k = 0; k < n && range.begin < range.end; k++) {
		int c = (unsigned char)text[k];

		range.begin = find_first_with(s, range, k, c);
		range.end = find_first_with(s, range, k, c + 1);
		if (range.begin < range.end && s->item[range.begin].text.n == k + 1)
			longest = &s->item[range.begin];
	}
	return longest;
}

/* Finds the next added token of the set from *from on, and its place with the space that it takes. *from: where the
 * search continues. */
static const struct added_token *find_added_token(const struct added_set *s, const struct text_view *v, size_t *from,
						  size_t least, struct text_span *ret)
{
	while (*from < v->n) {
		const struct added_token *a = NULL;
		struct text_span at;

		while (*from < v->n && !s->first[(unsigned char)v->text[*from]])
			++*from;
		if (*from < v->n)
			a = match_added_token(s, v->text + *from, v->n - *from);
		at = (struct text_span){ *from, *from + (a ? a->text.n : 1) };
		*from = at.end;
		if (!a || at.end > v->n || (a->single_word && !stands_alone(v, at)))
			continue;
		while (a->lstrip && at.begin > least) {
			size_t before = step_back(v->text, at.begin);

			if (!measure_space(v->text + before, at.begin - before))
				break;
			at.begin = before;
		}
		for (size_t step; a->rstrip && at.end < v->n; at.end += step)
			if (!(step = measure_space(v->text + at.end, v->n - at.end)))
				break;
		at.begin = at.begin < least ? least : at.begin;
		*ret = at;
		return a;
	}
	return NULL;
}

static struct text_view cut_view(const struct text_view *v, struct text_span part)
{
	struct text_view of = *v;

	of.text += part.begin;
	of.n = part.end - part.begin;
	of.base = v->origin ? find_origin_end(v, part.begin) : v->base + part.begin;
	of.origin = v->origin ? v->origin + part.begin : NULL;
	of.first = v->first && !part.begin;
	of.continues = v->continues && !part.begin;
	return of;
}

static int encode_stage(struct bpe_encoder *e, int stage, const struct text_view *v, struct err *err);

/* Changes the text between added tokens, and passes it on. */
static int change_part(struct bpe_encoder *e, int stage, struct text_view v, struct err *err)
{
	int rc = 0;

	for (int i = 0; !rc && i < e->b->n_changes[stage]; i++)
		rc = text_change_apply(&e->b->change[stage][i], &e->changing[stage], &v, err);
	return rc || !v.n ? rc : encode_stage(e, stage + 1, &v, err);
}

/* Stage 0 and 1: the added tokens of the original and of the normalised text; 2: words. */
static int encode_stage(struct bpe_encoder *e, int stage, const struct text_view *v, struct err *err)
{
	const struct added_set *set = stage < 2 ? &e->b->added[stage] : NULL;
	const struct added_token *a;
	struct text_span part = { 0, v->n }, at;
	size_t from = 0;
	int rc = 0;

	if (!set) {
		e->view = *v;
		return split_word(e, 0, part, err);
	}
	while (!rc && set->n && (a = find_added_token(set, v, &from, part.begin, &at))) {
		part.end = at.begin;
		if (part.end > part.begin)
			rc = change_part(e, stage, cut_view(v, part), err);
		buf_add(e->request->tokens, &a->id, sizeof(a->id));
		if (e->request->ends) {
			uint32_t end = find_origin_end(v, at.end);

			buf_add(e->request->ends, &end, sizeof(end));
		}
		part = (struct text_span){ at.end, v->n };
		from = from < at.end ? at.end : from;
	}
	return rc || part.begin == part.end ? rc : change_part(e, stage, part.begin ? cut_view(v, part) : *v, err);
}

/* ---- texts ---- */

struct bpe_encoder *bpe_encoder_new(const struct bpe *b)
{
	struct bpe_encoder *e = mem_zalloc(sizeof(*e));

	e->b = b;
	e->merger = merger_new(b->merges, &(struct merger_start){ fill_word, (void *)b });
	e->matcher = text_matcher_new();
	for (int i = 0; i < 2; i++)
		text_changing_init(&e->changing[i], e->matcher);
	return e;
}

void bpe_encoder_free(struct bpe_encoder *e)
{
	merger_free(e->merger);
	text_matcher_free(e->matcher);
	for (int i = 0; i < 2; i++)
		text_changing_done(&e->changing[i]);
	free(e);
}

static void add_invalid_byte(struct bpe_encoder *e, size_t at)
{
	int32_t token = e->b->of_byte[(unsigned char)e->request->text[at]];
	uint32_t end = (uint32_t)at + 1;

	token = token < 0 ? e->b->unknown : token;
	if (token < 0)
		return;
	buf_add(e->request->tokens, &token, sizeof(token));
	if (e->request->ends)
		buf_add(e->request->ends, &end, sizeof(end));
}

int bpe_encode(struct bpe_encoder *e, const struct token_request *r, struct err *err)
{
	const unsigned char *u = (const unsigned char *)r->text;
	int rc = 0;

	e->request = r;
	for (int i = 0; i < 2; i++) {
		e->changing[i].origins = r->ends != NULL;
		e->changing[i].max = GROWTH_MAX * r->n + 4096;
	}
	for (size_t at = 0, end; !rc && at < r->n; at = end) {
		size_t step = 1;

		for (end = at; end < r->n && step; end += step)
			step = u[end] < 0x80 ? 1 : utf8_step(u + end, r->n - end);
		if (end > at)
			rc = encode_stage(e, 0,
					  &(struct text_view){ .text = r->text + at,
							       .n = end - at,
							       .base = at,
							       .first = !at && !r->continues,
							       .continues = at || r->continues },
					  err);
		if (!rc && end < r->n)
			add_invalid_byte(e, end++);
	}
	return rc;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

size_t bpe_cut(const struct bpe *b, const char *text, size_t n)
{
	for (size_t at = b->cuts && n > 2 ? n - 2 : 0; at > 0; at--)
		if (text[at] == ' ' && is_letter(text[at - 1]) && is_letter(text[at + 1]))
			return at;
	return 0;
}

const char *bpe_bytes(const struct bpe *b, int32_t token, bool first, size_t *ret_n)
{
	const struct vocab_piece *p = &b->shown[token];
	bool strips = first && b->strips_first && p->n && p->bytes[0] == ' ';

	*ret_n = p->n - strips;
	return p->bytes ? p->bytes + strips : NULL;
}

size_t bpe_special(const struct bpe *b, const char *text, size_t n)
{
	for (int i = 0; i < 2; i++) {
		const struct added_token *a =
			n && b->added[i].first[(unsigned char)*text] ? match_added_token(&b->added[i], text, n) : NULL;

		if (a && a->special)
			return a->text.n;
	}
	return 0;
}

int bpe_before(const struct bpe *b, const int32_t **ret)
{
	*ret = b->before.token;
	return b->before.n;
}
