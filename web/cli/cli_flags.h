/* cli_flags.h: parses the flags of one command by table: --name VALUE or --name=VALUE, with - and _ equivalent.
 * Suggests the nearest name for an unknown flag. Prints nothing. */
#ifndef DPT_CLI_CLI_FLAGS_H
#define DPT_CLI_CLI_FLAGS_H

#include <stdbool.h>
#include <stddef.h>

#include "tracker/base/err.h"

enum flag_kind { FLAG_SWITCH, FLAG_TEXT, FLAG_PATH /* not empty */, FLAG_NUMBER, FLAG_LIST };

struct flag_list {
	const char **items;
	size_t count;
};

/* into is bool *, const char **, int * or struct flag_list * (its items have room for argc entries). */
struct flag {
	const char *name;  /* without the dashes */
	enum flag_kind kind;
	const char *value; /* name of the value in --help */
	const char *help;
	void *into;
	int min, max; /* of a number */
};

/* Parses argv[0..argc): flags by the table (a NULL name ends it), the rest into words. ERR_USAGE with a message of one
 * line. */
int flags_read(const struct flag *table, int argc, char **argv, struct flag_list *words, struct err *err);

/* The candidate that is most similar to text; NULL when none is similar. */
const char *flags_nearest(const char *text, const char *const *candidates, size_t n);

#endif
