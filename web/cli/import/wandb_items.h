/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_items.h: converts what W&B stores as JSON by path: rows of its history, its config, its summary. Knows neither
 * the order of records nor files other than those that a row names. */
#ifndef DPT_CLI_WANDB_ITEMS_H
#define DPT_CLI_WANDB_ITEMS_H

#include "web/cli/import/importer.h"

/* Of a key of rows: its newest number; NaN: it has none. */
struct wandb_last {
	double value;
};

/* A metric, or with * a pattern of metrics, whose steps are the values of another one. */
struct wandb_rule {
	const char *name, *step_metric;
	struct wandb_rule *next;
};

struct wandb_items {
	struct importer_run *run;
	const char *files;  /* base folder of the paths of media; NULL: none */
	struct map *seen;   /* keys of rows → struct wandb_last */
	struct wandb_rule *rules; /* of define_metric, in order */
	json_t *row;        /* while it is read */
	int64_t step;
	double wall_s;
};

/* Applies the updates (field 1: key or nested keys, and JSON) of a ConfigRecord, SummaryRecord or HistoryRecord to the
 * object, then its removals (field 2 of the first two). wandb_merge_from applies updates in field n. */
void wandb_merge(json_t *object, struct event_span record);
void wandb_merge_from(json_t *object, struct event_span record, unsigned n);

void wandb_row(struct wandb_items *w, json_t *row);        /* points and media at w's step and time */
void wandb_params(struct wandb_items *w, json_t *config);
void wandb_finals(struct wandb_items *w, json_t *summary); /* adds keys without a row */

#endif
