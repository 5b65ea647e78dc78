/* wandb.h: W&B's offline runs: a folder offline-run-<time>-<id> (run-… of one that was online) with run-<id>.wandb and
 * files/ in it, and the folder wandb/ that holds several. */
#ifndef DPT_CLI_BRING_WANDB_H
#define DPT_CLI_BRING_WANDB_H

#include "web/cli/bring/bring.h"

bool wandb_is(const char *path); /* a .wandb file, a run's folder, or a folder of these */
int wandb_read(struct bring *b, const char *path, struct err *err);

/* What one file's bytes hold; files: the folder of what the run saved, NULL: none. ERR_CORRUPT: it does not say whose
 * run it is, by then. session names this file among those of a run; sessions: the run's, by id → int (NULL: alone). */
struct wandb_file {
	const void *bytes;
	size_t n;
	const char *files, *session;
	struct map *sessions;
};

int wandb_take(struct bring *b, const struct wandb_file *file, struct err *err);

#endif
