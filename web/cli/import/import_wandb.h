/* import_wandb.h: imports W&B's offline runs. A run is a folder offline-run-<time>-<id> (run-… if it was online) with
 * run-<id>.wandb and files/; the folder wandb/ contains several runs. */
#ifndef DPT_CLI_BRING_IMPORT_WANDB_H
#define DPT_CLI_BRING_IMPORT_WANDB_H

#include "web/cli/import/importer.h"

bool wandb_is(const char *path); /* a .wandb file, a folder of a run, or a folder of these */
int wandb_read(struct importer *b, const char *path, struct err *err);

#endif
