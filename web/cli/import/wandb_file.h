/* wandb_file.h: one .wandb file, which is a run's session. Knows no folder but the one it is told. */
#ifndef DPT_CLI_BRING_WANDB_FILE_H
#define DPT_CLI_BRING_WANDB_FILE_H

#include "web/cli/import/importer.h"

/* What one file's bytes hold; files: the folder of what the run saved, NULL: none. ERR_CORRUPT: it does not say whose
 * run it is, by then. session names this file among those of a run; sessions: the run's, by id → int (NULL: alone). */
struct wandb_file {
	const void *bytes;
	size_t n;
	const char *files, *session;
	struct map *sessions;
};

int wandb_take(struct importer *b, const struct wandb_file *file, struct err *err);

#endif
