/* SPDX-License-Identifier: Apache-2.0 */
/* lexer.h: the tokens of filters, orders and formulas. A grammar's rules name its words and operators. Pure. */
#ifndef DPT_STORE_LEXER_H
#define DPT_STORE_LEXER_H

#include <stdbool.h>

#include "tracker/base/arena.h"

enum lexer_token {
	LEXER_END,
	LEXER_WORD,
	LEXER_QUOTED, /* "…" or `…` */
	LEXER_TEXT,   /* '…' */
	LEXER_NUMBER,
	LEXER_OPERATOR,
	LEXER_OPEN,
	LEXER_CLOSE,
	LEXER_COMMA,
	LEXER_BAD /* a quote that is not closed, an unknown character, or out of memory */
};

struct lexer_rules {
	const char *word;      /* characters of a word besides letters, digits and UTF-8; NULL: all up to a blank, an
				* operator, a bracket or a comma, with quoted parts */
	const char *operators; /* characters; joined: a run of them is one operator */
	bool joined;
	bool signs; /* a number may have a sign; it ends at a blank, operator, bracket or comma */
	bool raw;   /* strings keep their quotes; else a doubled quote stands for one */
};

struct lexer {
	const struct lexer_rules *rules;
	struct arena *arena;
	const char *at, *start; /* start: of the current token */
	enum lexer_token kind;
	char *word; /* text of a word, quoted text, text, number or operator; else NULL */
};

/* Starts at the first token. The text must outlive the lexer. */
void lexer_begin(struct lexer *l, const struct lexer_rules *rules, struct arena *a, const char *text);
void lexer_next(struct lexer *l);

bool lexer_is_word(const struct lexer *l, const char *word); /* ignoring case */

#endif
