/* SPDX-License-Identifier: Apache-2.0 */
/* text_pattern.h: the patterns of tokenizer.json, which are written for Oniguruma, by PCRE2. What both would match
 * differently is rewritten or refused: the classes of white space and of words, scripts, sets inside sets. Immutable,
 * so thread-safe; each thread has its own matcher. Texts are valid UTF-8. */
#ifndef DPT_DATA_TEXT_PATTERN_H
#define DPT_DATA_TEXT_PATTERN_H

#include "tracker/base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct text_pattern;
struct text_matcher;

struct text_span { /* bytes of a text */
	size_t begin, end;
};

/* Compiles a regular expression, or with literal the text to find. ERR_USAGE: unknown or ambiguous syntax, or it
 * matches the empty text. */
int text_pattern_new(struct text_pattern **ret, const char *pattern, bool literal, struct err *err);
void text_pattern_free(struct text_pattern *p); /* NULL is fine */

struct text_matcher *text_matcher_new(void);
void text_matcher_free(struct text_matcher *m); /* NULL is fine */

struct pattern_search {
	const char *text;
	struct text_span within; /* bytes in front of it are seen by assertions alone */
};

/* Finds the first match. Returns 1, 0: none, or ERR_USAGE: it takes too many steps. */
int text_pattern_find(const struct text_pattern *p, struct text_matcher *m, const struct pattern_search *s,
		      struct text_span *ret, struct err *err);

#endif
