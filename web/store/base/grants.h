/* SPDX-License-Identifier: Apache-2.0 */
/* grants.h: what a token may do in which experiments, as text: `open*=read,own=write,new*=write+create`. A name may
 * end with a star and is then a prefix. The most specific grant decides: a name before a prefix, a longer prefix before
 * a shorter one. Experiments that no grant names do not exist for the token. A backslash makes the next character a
 * part of the name. Pure: knows no store. */
#ifndef DPT_STORE_GRANTS_H
#define DPT_STORE_GRANTS_H

#include "tracker/base/arena.h"
#include "tracker/base/err.h"

enum grant_level { GRANT_NONE, GRANT_READ, GRANT_WRITE, GRANT_ADMIN };

#define GRANTS_TEXT_MAX 8192 /* bytes, with the end */

struct grant {
	const char *name; /* without its star */
	size_t len;
	bool prefix, create; /* create: experiments below the prefix may be created */
	enum grant_level level;
};

struct grants {
	const struct grant *items; /* in the order of the text */
	size_t count;
};

/* Parses into the arena. ERR_USAGE: an empty or unknown part, two stars, a name twice, create without prefix or write,
 * or too long. */
int grants_parse(struct grants *ret, struct arena *a, const char *text, struct err *err);

/* The level for an experiment of this name. g without items: GRANT_NONE. */
enum grant_level grants_level(const struct grants *g, const char *experiment);

/* Returns true if an experiment of this name may be created, whether or not it exists. */
bool grants_may_create(const struct grants *g, const char *experiment);

/* The level that every experiment has, also a future one. */
enum grant_level grants_least(const struct grants *g);

const char *grant_level_name(enum grant_level level); /* none read write admin */

#endif
