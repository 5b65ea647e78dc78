/* wandb_items.h: converts what W&B stores as JSON by path: rows of its history, its config, its summary. Knows neither
 * the order of records nor files other than those that a row names. */
#ifndef DPT_CLI_WANDB_ITEMS_H
#define DPT_CLI_WANDB_ITEMS_H

#include "web/cli/import/importer.h"

struct wandb_items {
	struct importer_run *run;
	const char *files;  /* base folder of the paths of media; NULL: none */
	struct map *seen;   /* keys that have a point or an image */
	int64_t step;
	double wall_s;
};

/* Applies the updates (field 1: key or nested keys, and JSON) of a ConfigRecord, SummaryRecord or HistoryRecord to the
 * object, then its removals (field 2 of the first two). wandb_merge_from applies updates in field n. */
void wandb_merge(json_t *object, struct event_span record);
void wandb_merge_from(json_t *object, struct event_span record, unsigned n);

void wandb_row(struct wandb_items *w, json_t *row);        /* points and media at w's step and time */
void wandb_params(struct wandb_items *w, json_t *config);
void wandb_finals(struct wandb_items *w, json_t *summary); /* of keys without a row */

#endif
