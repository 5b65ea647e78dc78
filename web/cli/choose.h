/* choose.h: resolves the runs that a command selects by name or filter. One thread. */
#ifndef DPT_CLI_CHOOSE_H
#define DPT_CLI_CHOOSE_H

#include "web/cli/cli.h"

struct choose_opts {
	const char *const *names; /* ids, prefixes of ids, names */
	size_t name_count;
	const char *experiment, *filter; /* NULL: none; either adds every run that matches */
	bool deleted;                    /* among deleted runs, else among the others */
};

/* *ret: a JSON array of runs as /runs lists them, without duplicates, in the order selected; the caller owns it
 * (json_decref). ERR_NOENT: no run has a name. ERR_USAGE: several runs have it, or nothing is selected. */
int choose_runs(struct source *s, const struct choose_opts *o, json_t **ret, struct err *err);

#define CHOOSE_FLAGS(o)                                                                                               \
	{ "experiment", FLAG_TEXT, "NAME", "every run of the experiment", &(o)->experiment, 0, 0 },                 \
	{ "filter", FLAG_TEXT, "TEXT", "every run that matches, such as: params.lr = '0.1'", &(o)->filter, 0, 0 }

#endif
