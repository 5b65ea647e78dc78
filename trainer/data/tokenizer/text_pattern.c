/* SPDX-License-Identifier: Apache-2.0 */
/* text_pattern.c: rewrites and compiles patterns, and finds their matches. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "trainer/data/tokenizer/text_pattern.h"

#include <ctype.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/buf.h"
#include "tracker/mem/mem.h"

#define PATTERN_BYTES_MAX ((size_t)1 << 16)
#define STEPS_MAX 10000000
#define HEAP_KIB_MAX (1 << 18)
#define JIT_STACK_BYTES ((size_t)1 << 20)

struct text_pattern {
	pcre2_code *code;
	bool compiled; /* to machine code */
	char *literal; /* NULL: code */
	size_t n;
};

struct text_matcher {
	pcre2_match_data *data;
	pcre2_match_context *context;
	pcre2_jit_stack *stack;
};

/* ---- Oniguruma's syntax in that of PCRE2 ---- */

#define SPACES "\\t-\\r\\x{85}\\p{Z}" /* White_Space; PCRE2's own \s adds U+180E */

struct rewriting {
	const char *at;
	bool in_set;
	struct buf *out;
	struct err *err;
};

static int refuse_syntax(const struct rewriting *r, const char *why)
{
	return err_set(r->err, ERR_USAGE, "pattern: %s at '%.20s' is not supported", why, r->at);
}

/* \p{Han} is a script, which PCRE2 would extend to characters that scripts share. */
static int rewrite_property(struct rewriting *r)
{
	const char *name = r->at + 3, *end = r->at[2] == '{' ? strchr(name, '}') : NULL;
	int n = end ? (int)(end - name) : 0, not = n && *name == '^';

	if (n <= not)
		return refuse_syntax(r, "a property without a name");
	buf_addf(r->out, "\\%c{%s%s%.*s}", r->at[1], not? "^" : "", n - not> 2 ? "sc:" : "", n - not, name + not);
	r->at = end + 1;
	return 0;
}

static int rewrite_escape(struct rewriting *r)
{
	char c = r->at[1];

	if (c == 'p' || c == 'P')
		return rewrite_property(r);
	if (c == 's')
		buf_adds(r->out, r->in_set ? SPACES : "[" SPACES "]");
	else if (c == 'S' && !r->in_set)
		buf_adds(r->out, "[^" SPACES "]");
	else if (c && (strchr("drntf", c) || ispunct((unsigned char)c)))
		buf_add(r->out, r->at, 2);
	else
		return refuse_syntax(r, "the escape");
	r->at += 2;
	return 0;
}

static bool is_known_group(const char *at)
{
	static const char *const known[] = { "(?:", "(?i:", "(?=", "(?!", "(?>", "(?<=", "(?<!" };

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strncmp(at, known[i], strlen(known[i])))
			return true;
	return at[1] != '?' && at[1] != '*';
}

static int rewrite_pattern(struct rewriting *r)
{
	int rc = 0;

	while (!rc && *r->at) {
		if (*r->at == '\\') {
			rc = rewrite_escape(r);
			continue;
		}
		if (r->in_set && (*r->at == '[' || !strncmp(r->at, "&&", 2)))
			return refuse_syntax(r, "a set inside a set");
		if (!r->in_set && *r->at == '(' && !is_known_group(r->at))
			return refuse_syntax(r, "the group");
		if (!r->in_set && !strncmp(r->at, "}+", 2))
			return refuse_syntax(r, "a repeated repetition");
		if (*r->at == '[' || *r->at == ']')
			r->in_set = *r->at == '[';
		buf_addc(r->out, *r->at++);
	}
	return rc;
}

static int compile_pattern(struct text_pattern *p, const struct buf *text, struct err *err)
{
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	PCRE2_UCHAR why[200] = "out of memory";
	PCRE2_SIZE where = 0;
	int code = 0;

	if (context) {
		pcre2_set_newline(context, PCRE2_NEWLINE_LF);
		p->code = pcre2_compile((PCRE2_SPTR)text->data, text->len, PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE,
					&code, &where, context);
	}
	pcre2_compile_context_free(context);
	if (!p->code && code)
		pcre2_get_error_message(code, why, sizeof(why));
	if (!p->code)
		return err_set(err, ERR_USAGE, "pattern: %s at byte %zu of '%.100s'", (char *)why, (size_t)where,
			       text->data);
	p->compiled = !pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE);
	return 0;
}

static int check_never_empty(const struct text_pattern *p, const char *pattern, struct err *err)
{
	struct text_matcher *m = text_matcher_new();
	int rc = pcre2_match(p->code, (PCRE2_SPTR) "", 0, 0, 0, m->data, m->context);

	text_matcher_free(m);
	return rc < 0 ? 0 : err_set(err, ERR_USAGE, "pattern: '%.100s' matches the empty text", pattern);
}

int text_pattern_new(struct text_pattern **ret, const char *pattern, bool literal, struct err *err)
{
	struct text_pattern *p = mem_zalloc(sizeof(*p));
	struct buf text;
	int rc = *pattern ? 0 : err_set(err, ERR_USAGE, "pattern: is empty");

	buf_init(&text, PATTERN_BYTES_MAX);
	if (literal) {
		p->literal = mem_strdup(pattern);
		p->n = strlen(pattern);
	} else if (!rc) {
		rc = rewrite_pattern(&(struct rewriting){ .at = pattern, .out = &text, .err = err });
		if (!rc && buf_failed(&text))
			rc = err_set(err, ERR_USAGE, "pattern: is longer than 64 KiB");
		if (!rc)
			rc = compile_pattern(p, &text, err);
		if (!rc)
			rc = check_never_empty(p, pattern, err);
	}
	buf_done(&text);
	if (rc)
		text_pattern_free(p);
	else
		*ret = p;
	return rc;
}

void text_pattern_free(struct text_pattern *p)
{
	if (!p)
		return;
	pcre2_code_free(p->code);
	free(p->literal);
	free(p);
}

/* ---- matching ---- */

struct text_matcher *text_matcher_new(void)
{
	struct text_matcher *m = mem_zalloc(sizeof(*m));

	m->data = pcre2_match_data_create(1, NULL);
	m->context = pcre2_match_context_create(NULL);
	m->stack = pcre2_jit_stack_create(JIT_STACK_BYTES / 32, JIT_STACK_BYTES, NULL);
	if (!m->data || !m->context)
		mem_exhausted(sizeof(*m));
	pcre2_set_match_limit(m->context, STEPS_MAX);
	pcre2_set_heap_limit(m->context, HEAP_KIB_MAX);
	if (m->stack)
		pcre2_jit_stack_assign(m->context, NULL, m->stack);
	return m;
}

void text_matcher_free(struct text_matcher *m)
{
	if (!m)
		return;
	pcre2_match_data_free(m->data);
	pcre2_match_context_free(m->context);
	pcre2_jit_stack_free(m->stack);
	free(m);
}

int text_pattern_find(const struct text_pattern *p, struct text_matcher *m, const struct pattern_search *s,
		      struct text_span *ret, struct err *err)
{
	const size_t begin = s->within.begin, end = s->within.end;
	const PCRE2_SIZE *found;
	int rc;

	if (p->literal) {
		const char *at = memmem(s->text + begin, end - begin, p->literal, p->n);

		if (at)
			*ret = (struct text_span){ (size_t)(at - s->text), (size_t)(at - s->text) + p->n };
		return at != NULL;
	}
	rc = (p->compiled ? pcre2_jit_match : pcre2_match)(p->code, (PCRE2_SPTR)s->text, end, begin,
							   PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, m->data, m->context);
	if (rc == PCRE2_ERROR_NOMATCH)
		return 0;
	if (rc < 0)
		return err_set(err, ERR_USAGE, "the tokenizer's pattern needs too many steps");
	found = pcre2_get_ovector_pointer(m->data);
	*ret = (struct text_span){ found[0], found[1] };
	return 1;
}
