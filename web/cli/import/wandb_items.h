/* wandb_items.h: what W&B keeps as JSON by path: rows of its history, its config, its summary. Knows no records' order
 * and no files but those that a row names. */
#ifndef DPT_CLI_BRING_WANDB_ITEMS_H
#define DPT_CLI_BRING_WANDB_ITEMS_H

#include "web/cli/import/importer.h"

struct wandb_items {
	struct importer_run *run;
	const char *files;  /* the folder that paths of pictures lead from; NULL: none */
	struct map *seen;   /* keys that had a point, or a picture */
	int64_t step;
	double wall_s;
};

/* Puts the updates (field 1: key or nested keys, and JSON) of a ConfigRecord, SummaryRecord or HistoryRecord into the
 * object, and takes its removals (field 2 of the former two) out; … where they are field n. */
void wandb_merge(json_t *object, struct event_span record);
void wandb_merge_from(json_t *object, struct event_span record, unsigned n);

void wandb_row(struct wandb_items *w, json_t *row);        /* points and pictures at w's step and time */
void wandb_params(struct wandb_items *w, json_t *config);
void wandb_finals(struct wandb_items *w, json_t *summary); /* of keys that had no row */

#endif
