/* SPDX-License-Identifier: Apache-2.0 */
/* text_change.c: a normal form is made of the runs of characters that it can change alone, each with the character in
 * front of it; texts in ASCII stay where they are. */
#include "trainer/data/tokenizer/text_change.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "tracker/base/utf8.h"

void text_changing_init(struct text_changing *to, struct text_matcher *matcher)
{
	*to = (struct text_changing){ .matcher = matcher, .max = SIZE_MAX };
	for (int i = 0; i < 2; i++) {
		buf_init(&to->text[i], SIZE_MAX);
		buf_init(&to->origin[i], SIZE_MAX);
	}
}

void text_changing_done(struct text_changing *to)
{
	for (int i = 0; i < 2; i++) {
		buf_done(&to->text[i]);
		buf_done(&to->origin[i]);
	}
}

/* Appends bytes whose origin ends at byte `end` of v. */
static void add_changed(struct text_changing *to, const struct text_view *v, const void *bytes, size_t n, size_t end)
{
	uint32_t origin = (uint32_t)(!v->origin ? v->base + end : end ? v->origin[end - 1] : v->base);

	buf_add(&to->text[to->next], bytes, n);
	for (size_t i = 0; to->origins && i < n; i++)
		buf_add(&to->origin[to->next], &origin, sizeof(origin));
}

/* Appends bytes of v unchanged. */
static void add_unchanged(struct text_changing *to, const struct text_view *v, size_t begin, size_t end)
{
	buf_add(&to->text[to->next], v->text + begin, end - begin);
	for (size_t i = begin; to->origins && i < end; i++) {
		uint32_t origin = v->origin ? v->origin[i] : (uint32_t)(v->base + i + 1);

		buf_add(&to->origin[to->next], &origin, sizeof(origin));
	}
}

static void begin_change(struct text_changing *to)
{
	to->text[to->next].max = to->max;
	buf_reset(&to->text[to->next]);
	buf_reset(&to->origin[to->next]);
}

static int end_change(struct text_changing *to, struct text_view *v, struct err *err)
{
	if (buf_failed(&to->text[to->next]))
		return err_set(err, ERR_USAGE, "the tokenizer's normalizer makes a text larger than %zu bytes",
			       to->max);
	v->text = to->text[to->next].data ? to->text[to->next].data : "";
	v->n = to->text[to->next].len;
	v->origin = to->origins ? (const uint32_t *)(const void *)to->origin[to->next].data : NULL;
	to->next = !to->next;
	return 0;
}

static const utf8proc_option_t forms[] = {
	[CHANGE_NFC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE,
	[CHANGE_NFD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE,
	[CHANGE_NFKC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
	[CHANGE_NFKD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT,
};

/* Returns true if the form never changes the character at u, alone or after others: below U+0300 for NFC, ASCII for the
 * others. U+11A7, too: utf8proc 2.6 drops it after a Hangul syllable. */
static bool is_stable(enum text_change_kind kind, const unsigned char *u, size_t n)
{
	return *u < (kind == CHANGE_NFC ? 0xCC : 0x80) || (n > 2 && !memcmp(u, "\xe1\x86\xa7", 3));
}

static int add_normal_run(const struct text_change *c, struct text_changing *to, const struct text_view *v,
			  struct text_span run, struct err *err)
{
	utf8proc_uint8_t *form;
	utf8proc_ssize_t n = utf8proc_map((const utf8proc_uint8_t *)v->text + run.begin,
					  (utf8proc_ssize_t)(run.end - run.begin), &form, forms[c->kind]);

	if (n < 0)
		return err_set(err, ERR_NOMEM, "a normal form: %s", utf8proc_errmsg(n));
	add_changed(to, v, form, (size_t)n, run.end);
	free(form);
	return 0;
}

/* Normalises the runs of characters that the form may change; a text without such stays as it is. */
static int apply_normal_form(const struct text_change *c, struct text_changing *to, struct text_view *v,
			     struct err *err)
{
	const unsigned char *u = (const unsigned char *)v->text;
	size_t at = 0, copied = 0;
	int rc = 0;

	while (at < v->n && is_stable(c->kind, u + at, v->n - at))
		at += utf8_step(u + at, v->n - at);
	if (at == v->n)
		return 0;
	begin_change(to);
	while (!rc && at < v->n) {
		struct text_span run = { at, at };

		while (run.begin > copied && (u[--run.begin] & 0xC0) == 0x80)
			;
		while (run.end < v->n && !is_stable(c->kind, u + run.end, v->n - run.end))
			run.end += utf8_step(u + run.end, v->n - run.end);
		add_unchanged(to, v, copied, run.begin);
		rc = add_normal_run(c, to, v, run, err);
		for (copied = at = run.end; at < v->n && is_stable(c->kind, u + at, v->n - at);)
			at += utf8_step(u + at, v->n - at);
	}
	add_unchanged(to, v, copied, v->n);
	return rc ? rc : end_change(to, v, err);
}

static int apply_replacement(const struct text_change *c, struct text_changing *to, struct text_view *v,
			     struct err *err)
{
	struct pattern_search search = { v->text, { 0, v->n } };
	struct text_span found;
	int rc = text_pattern_find(c->pattern, to->matcher, &search, &found, err);

	if (rc <= 0)
		return rc;
	begin_change(to);
	while (rc > 0) {
		add_unchanged(to, v, search.within.begin, found.begin);
		add_changed(to, v, c->content, c->n, found.end);
		search.within.begin = found.end;
		rc = text_pattern_find(c->pattern, to->matcher, &search, &found, err);
	}
	add_unchanged(to, v, search.within.begin, v->n);
	return rc ? rc : end_change(to, v, err);
}

static int apply_prefix(const struct text_change *c, struct text_changing *to, struct text_view *v, struct err *err)
{
	if (!v->n || v->continues || (c->kind == CHANGE_BEGIN_FIRST && !v->first) ||
	    (c->kind != CHANGE_PREPEND && v->n >= c->n && !memcmp(v->text, c->content, c->n)))
		return 0;
	begin_change(to);
	add_changed(to, v, c->content, c->n, 0);
	add_unchanged(to, v, 0, v->n);
	return end_change(to, v, err);
}

int text_change_apply(const struct text_change *c, struct text_changing *to, struct text_view *v, struct err *err)
{
	if (c->kind <= CHANGE_NFKD)
		return apply_normal_form(c, to, v, err);
	if (c->kind == CHANGE_REPLACE)
		return apply_replacement(c, to, v, err);
	return apply_prefix(c, to, v, err);
}
