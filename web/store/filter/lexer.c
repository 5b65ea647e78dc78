/* SPDX-License-Identifier: Apache-2.0 */
/* lexer.c: reads one token at a time. */
#include "web/store/filter/lexer.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_one_of(char c, const char *set)
{
	return c && strchr(set, c);
}

static bool ends_number(const struct lexer *l, char c)
{
	return !l->rules->signs || !c || isspace((unsigned char)c) || is_one_of(c, "(),") ||
	       is_one_of(c, l->rules->operators);
}

static bool read_number(struct lexer *l)
{
	const char *digits = l->at + (l->rules->signs && is_one_of(*l->at, "+-"));
	char *end;

	if (!isdigit((unsigned char)digits[*digits == '.']) || is_one_of(digits[1], "xX"))
		return false;
	strtod(l->at, &end);
	if (!ends_number(l, *end))
		return false;
	l->at = end;
	return true;
}

/* A single quote belongs to a word only after a dot (tags.'a b'); elsewhere it starts a string (LIKE'x'). */
static bool opens_quotes(const char *word, const char *at)
{
	return is_one_of(*at, "\"`") || (*at == '\'' && at > word && at[-1] == '.');
}

/* The end of a word with quoted parts; NULL: a quote is not closed. */
static const char *find_quoted_end(const struct lexer *l)
{
	const char *word = l->at, *at = word, *close;

	while (*at && !isspace((unsigned char)*at) &&
	       (opens_quotes(word, at) || !(is_one_of(*at, "(),'") || is_one_of(*at, l->rules->operators)))) {
		close = opens_quotes(word, at) ? strchr(at + 1, *at) : at;
		if (!close)
			return NULL;
		at = close + 1;
	}
	return at;
}

static const char *find_word_end(const struct lexer *l)
{
	const char *at = l->at;

	if (!l->rules->word)
		return find_quoted_end(l);
	while (isalnum((unsigned char)*at) || is_one_of(*at, l->rules->word) || (unsigned char)*at >= 0x80)
		at++;
	return at > l->at ? at : NULL;
}

/* The closing quote; a doubled one is a part of the text. */
static const char *find_closing_quote(const struct lexer *l)
{
	char quote = *l->at;
	const char *end = strchr(l->at + 1, quote);

	while (end && !l->rules->raw && end[1] == quote)
		end = strchr(end + 2, quote);
	return end;
}

static void read_quoted(struct lexer *l, enum lexer_token kind)
{
	const char *end = find_closing_quote(l);

	l->at = end ? end + 1 : l->at + strlen(l->at);
	l->kind = end ? kind : LEXER_BAD;
}

/* Copies the token; quotes are removed unless the rules keep them. */
static void copy_lexer_token(struct lexer *l)
{
	bool quoted = !l->rules->raw && (l->kind == LEXER_QUOTED || l->kind == LEXER_TEXT);
	const char *from = l->start + quoted, *end = l->at - quoted;
	char *to = l->word = arena_alloc(l->arena, (size_t)(end - from) + 1);

	while (from < end) {
		*to++ = *from;
		from += quoted && *from == *l->start ? 2 : 1;
	}
	*to = '\0';
}

void lexer_next(struct lexer *l)
{
	const char *end;

	while (isspace((unsigned char)*l->at))
		l->at++;
	l->start = l->at;
	l->word = NULL;
	if (!*l->at) {
		l->kind = LEXER_END;
		return;
	}
	if (is_one_of(*l->at, "(),")) {
		l->kind = *l->at == '(' ? LEXER_OPEN : *l->at == ')' ? LEXER_CLOSE : LEXER_COMMA;
		l->at++;
	} else if (read_number(l)) {
		l->kind = LEXER_NUMBER;
	} else if (is_one_of(*l->at, l->rules->operators)) {
		l->at += l->rules->joined ? strspn(l->at, l->rules->operators) : 1;
		l->kind = LEXER_OPERATOR;
	} else if (*l->at == '\'') {
		read_quoted(l, LEXER_TEXT);
	} else if (l->rules->word && is_one_of(*l->at, "\"`")) {
		read_quoted(l, LEXER_QUOTED);
	} else {
		end = find_word_end(l);
		l->at = end ? end : l->at + strlen(l->at);
		l->kind = end ? LEXER_WORD : LEXER_BAD;
	}
	copy_lexer_token(l);
}

void lexer_begin(struct lexer *l, const struct lexer_rules *rules, struct arena *a, const char *text)
{
	*l = (struct lexer){ .rules = rules, .arena = a, .at = text };
	lexer_next(l);
}

bool lexer_is_word(const struct lexer *l, const char *word)
{
	return l->kind == LEXER_WORD && !strcasecmp(l->word, word);
}
