/* import_wandb.h: W&B's offline runs: a folder offline-run-<time>-<id> (run-… of one that was online) with run-<id>.wandb and
 * files/ in it, and the folder wandb/ that holds several. */
#ifndef DPT_CLI_BRING_IMPORT_WANDB_H
#define DPT_CLI_BRING_IMPORT_WANDB_H

#include "web/cli/import/importer.h"

bool wandb_is(const char *path); /* a .wandb file, a run's folder, or a folder of these */
int wandb_read(struct importer *b, const char *path, struct err *err);

#endif
