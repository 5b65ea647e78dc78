/* cmd_why.h: `dptrack compare --why`: what each change from run to run bought, for people and for other programs. */
#ifndef DPT_CLI_CMD_WHY_H
#define DPT_CLI_CMD_WHY_H

#include "web/cli/cli.h"

struct why_opts {
	bool json, csv, markdown, svg; /* at most one; none: sentences and a table */
};

/* words: at least two runs by id, beginning of one, or name. */
int why_print(struct source *s, const struct why_opts *o, const struct flag_list *words, struct err *err);

#endif
