/* SPDX-License-Identifier: Apache-2.0 */
/* intake.h: decodes what a client sent (journal bytes, points) into a batch that the writer's thread stores without
 * parsing: points grouped by series, the rest as a list in order. Knows no SQL.
 * Decoding always runs on the caller's thread. When a batch begins before the durable offset at the time of storing,
 * the writer requests the rest again (ingest_rest). */
#ifndef DPT_STORE_INTAKE_H
#define DPT_STORE_INTAKE_H

#include "tracker/event/event.h"
#include "web/store/points/series_summary.h"
#include "web/store/write/ingest.h"

struct intake_series {
	const char *key;
	int rank;		  /* EVENT_RANK_DEFAULT: the rank of the journal */
	struct sum_point *points; /* in order of arrival */
	size_t count;
	int64_t id; /* in the store; 0 until it is stored, or when it is left out */
};

struct intake_item {
	struct intake_item *next;
	enum event_kind kind;
	const char *key;
	const char *text;
	int64_t time_ms; /* time of the record */
	int64_t end_ms;	 /* EVENT_HPARAMS_*: 0 unknown */
	int64_t step;	 /* EVENT_SESSION: the first step of a foreign writer; EVENT_ALERT: its step */
	enum event_status status;
	bool segment, changed;
	int64_t count;	   /* EVENT_CONSOLE: lines; EVENT_ALERT: level; EVENT_OTHER: enum media_kind */
	const void *bytes; /* EVENT_CONSOLE: the message; EVENT_OTHER: the content */
	size_t len;
	const char *digest;		    /* EVENT_OTHER: of the content */
	int rank;			    /* EVENT_OTHER: as the rank of a series */
	double wall_time;		    /* EVENT_OTHER */
	const struct ingest_dataset *input; /* EVENT_INPUT */
};

/* Why records were not applied; equal texts are counted together. */
struct intake_problem {
	struct intake_problem *next;
	const char *text;
	uint64_t count;
};

struct intake_header {
	const char *experiment, *name, *host;
	int rank, world_size, segment;
	bool ordered;
	int64_t first_step, first_epoch, pid;
};

struct intake {
	struct arena *arena;
	struct intake_header *header; /* NULL: the bytes have no header record */
	struct intake_series *series;
	size_t series_count;
	uint64_t point_count;
	uint32_t *order; /* the series number of each point of a journal, in order of arrival */
	struct intake_item *items, **items_end;
	struct intake_problem *problems;
	uint64_t rejected;
	uint64_t end;	  /* journals: offset after the last record decoded */
	bool damaged;	  /* the bytes after end cannot be framed */
	bool spoke;	  /* at least one record was decoded */
	int64_t first_ms; /* time of the first record; INT64_MIN: none */
	int64_t last_ms;  /* time of the newest record */
};

/* Decodes op->bytes. Journals from a file skip damaged records and list them; others end there with ERR_CORRUPT. All
 * results live in the intake's arena. */
int intake_journal(struct intake *in, const struct ingest_op *op, struct err *err);

int intake_points(struct intake *in, const struct ingest_op *op, struct err *err);

void intake_init(struct intake *in);
void intake_done(struct intake *in);

/* ---- intake_item.c ----
 * Copies the items of records into a batch. Private to web/store/write/intake.c. */

/* Counts a rejected record; equal problems share one entry. */
void intake_item_problem(struct intake *in, const char *text);

/* A copy of the key; NULL, with a problem, when it is not allowed. what: "metric", "param", … */
const char *intake_item_key(struct intake *in, struct event_text key, const char *what);

/* Checks the first record of a journal and copies it. ERR_USAGE, ERR_UNSUPPORTED: the header is not of this run. */
int intake_header_add(struct intake *in, const struct ingest_op *op, const struct event_header *h, struct err *err);

/* Adds an item of a record that is neither a point nor a header. */
void intake_item_add(struct intake *in, const struct ingest_op *op, const struct event *ev,
		     const struct event_item *item);

#endif
