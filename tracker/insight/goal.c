/* SPDX-License-Identifier: Apache-2.0 */
/* goal.c: matches the words of a metric's key against schema/insight/goals.def. */
#include "tracker/insight/goal.h"

#include <stdbool.h>
#include <string.h>

enum { SAID_PLACE = 20, UNKNOWN_PLACE = 2 };
enum line_kind { LINE_GOAL, LINE_HELD_OUT, LINE_INNER };

struct goal_line {
	enum line_kind kind;
	const char *patterns; /* separated by spaces; of INNER a prefix */
	enum goal_best best;
	int place;
};

#define GOAL(patterns, best, place) { LINE_GOAL, patterns, GOAL_##best, place },
#define HELD_OUT(patterns) { LINE_HELD_OUT, patterns, GOAL_UNKNOWN, 1 },
#define INNER(prefix) { LINE_INNER, prefix, GOAL_UNKNOWN, 0 },
static const struct goal_line lines[] = {
#include "schema/insight/goals.def"
};

/* ASCII alone, whatever the locale; all other characters are letters. */
static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char lower_letter(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_word_char(char c)
{
	return is_digit(c) || (lower_letter(c) >= 'a' && lower_letter(c) <= 'z') || (unsigned char)c >= 0x80;
}

/* Returns true if the words at the beginning of the text are those of the pattern. */
static bool begins_with_words(const char *text, const char *pattern)
{
	for (; *pattern && *pattern != ' '; pattern++, text++)
		if (*pattern == '_' ? !*text || is_word_char(*text) : lower_letter(*text) != *pattern)
			return false;
	while (is_digit(*text))
		text++;
	return !is_word_char(*text);
}

/* Returns true if one of the patterns fits a part of the key. */
static bool has_words(const char *key, const char *patterns)
{
	for (const char *at = key; *at; at++) {
		if (at > key && is_word_char(at[-1]))
			continue;
		for (const char *p = patterns; *p; p += strcspn(p, " "), p += *p == ' ')
			if (begins_with_words(at, p))
				return true;
	}
	return false;
}

/* Returns the first line of the kind that fits the key, or NULL. */
static const struct goal_line *find_line(enum line_kind kind, const char *key)
{
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const char *patterns = lines[i].patterns;

		if (lines[i].kind == kind &&
		    (kind == LINE_INNER ? !strncmp(key, patterns, strlen(patterns)) : has_words(key, patterns)))
			return &lines[i];
	}
	return NULL;
}

/* Returns the line that decides where the run says nothing; NULL if the key is unknown. */
static const struct goal_line *find_goal(const char *key)
{
	const struct goal_line *inner = find_line(LINE_INNER, key);

	return inner ? inner : find_line(LINE_GOAL, key);
}

static enum goal_best read_said(const char *said)
{
	if (!said)
		return GOAL_UNKNOWN;
	return !strcmp(said, "min") ? GOAL_MIN : !strcmp(said, "max") ? GOAL_MAX : GOAL_UNKNOWN;
}

enum goal_best goal_best_of(const char *key, const char *said)
{
	enum goal_best best = read_said(said);
	const struct goal_line *line = best ? NULL : find_goal(key);

	return line ? line->best : best;
}

const char *goal_best_word(enum goal_best best)
{
	return best == GOAL_MIN ? "min" : best == GOAL_MAX ? "max" : "last";
}

void goal_choice_add(struct goal_choice *c, const char *key, const char *said, size_t have, size_t n)
{
	const struct goal_line *line = find_goal(key);
	int place = read_said(said) ? SAID_PLACE : line ? line->place : UNKNOWN_PLACE;
	double merit;

	place += place && find_line(LINE_HELD_OUT, key);
	merit = place * (2 * have >= n ? 1 : 0.3);
	if (merit > c->merit)
		*c = (struct goal_choice){ key, goal_best_of(key, said), merit };
}
