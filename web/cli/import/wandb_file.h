/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_file.h: reads one .wandb file, which is a session of a run. Knows no folders but the given one. */
#ifndef DPT_CLI_WANDB_FILE_H
#define DPT_CLI_WANDB_FILE_H

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

/* Reads the log format of LevelDB and of W&B's .wandb files. A file has blocks of 32 KiB. Records are cut
 * into fragments that do not cross blocks. Each fragment has a CRC-32 (zlib's, over its type and data), length and
 * type. Pure: works on bytes in memory, knows nothing of the content of records. */
#define BLOCKS_HEAD_BYTES 7 /* header of the file, inside the first block: ":W&B", 0xBEE1 little-endian, version 0 */

struct blocks {
	const unsigned char *bytes;
	size_t n, at;
	struct buf whole; /* a record joined from fragments */
	bool torn;	  /* the last fragment is incomplete */
	uint64_t damaged; /* damaged fragments, and records that lack one */
};

/* ERR_CORRUPT: the header differs. Borrows the bytes; call blocks_done also after a failure. */
int blocks_init(struct blocks *b, const void *bytes, size_t n);
void blocks_done(struct blocks *b);

/* Reads the next complete record. Returns 1, or 0 at the end; the torn tail of a killed process is an end. The bytes
 * are valid until the next call. After damage it continues with the next block. */
int blocks_next(struct blocks *b, struct event_span *ret);

/* ---- wandb_items.c ----
 * Converts what W&B stores as JSON by path: rows of its history, its config, its summary. Knows neither the order of
 * records nor files other than those that a row names. */

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
	const char *files;	  /* base folder of the paths of media; NULL: none */
	struct map *seen;	  /* keys of rows → struct wandb_last */
	struct wandb_rule *rules; /* of define_metric, in order */
	json_t *row;		  /* while it is read */
	int64_t step;
	double wall_s;
};

/* Applies the updates (field 1: key or nested keys, and JSON) of a ConfigRecord, SummaryRecord or HistoryRecord to the
 * object, then its removals (field 2 of the first two). wandb_merge_from applies updates in field n. */
void wandb_merge(json_t *object, struct event_span record);
void wandb_merge_from(json_t *object, struct event_span record, unsigned n);

void wandb_row(struct wandb_items *w, json_t *row); /* points and media at w's step and time */
void wandb_params(struct wandb_items *w, json_t *config);
void wandb_finals(struct wandb_items *w, json_t *summary); /* adds keys without a row */

#endif
