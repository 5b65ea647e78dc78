/* choose.h: which runs a command means: those named, and those that a filter finds. One thread. */
#ifndef DPT_CLI_CHOOSE_H
#define DPT_CLI_CHOOSE_H

#include "web/cli/cli.h"

struct choose_opts {
	const char *const *names; /* ids, beginnings of ids, names */
	size_t name_count;
	const char *experiment, *filter; /* either: every run they find, too */
	bool deleted;                    /* among deleted runs, else among the others */
};

/* *ret: a JSON array of runs as /runs lists them, each once, in the order asked for; the caller's (json_decref).
 * ERR_NOENT: a name that no run has; ERR_USAGE: one that several have, or nothing was asked for. */
int choose_runs(struct source *s, const struct choose_opts *o, json_t **ret, struct err *err);

#define CHOOSE_FLAGS(o)                                                                                               \
	{ "experiment", FLAG_TEXT, "NAME", "every run of the experiment", &(o)->experiment, 0, 0 },                 \
	{ "filter", FLAG_TEXT, "TEXT", "every run that matches, such as: params.lr = '0.1'", &(o)->filter, 0, 0 }

#endif
