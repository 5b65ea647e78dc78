/* wandb_file.h: reads one .wandb file, which is a session of a run. Knows no folders but the given one. */
#ifndef DPT_CLI_BRING_WANDB_FILE_H
#define DPT_CLI_BRING_WANDB_FILE_H

#include "web/cli/import/importer.h"

/* A file to import. files: folder of the files that the run saved, NULL: none. session: name of this file among those
 * of its run. sessions: id of a run → int, number of its sessions so far (NULL: only this one). ERR_CORRUPT: the run
 * record is missing. */
struct wandb_file {
	const void *bytes;
	size_t n;
	const char *files, *session;
	struct map *sessions;
};

int wandb_take(struct importer *b, const struct wandb_file *file, struct err *err);

#endif
