/* cmd_why.h: `dptrack compare --why`: prints the speedup of each change between consecutive runs. */
#ifndef DPT_CLI_CMD_WHY_H
#define DPT_CLI_CMD_WHY_H

#include "web/cli/cli.h"

struct why_opts {
	bool json, csv, markdown, svg; /* at most one; none: sentences and a table */
};

/* words: at least two runs, each an id, a prefix of one, or a name. */
int why_print(struct source *s, const struct why_opts *o, const struct flag_list *words, struct err *err);

#endif
