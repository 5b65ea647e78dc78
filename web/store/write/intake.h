/* intake.h: turns what a client sent (journal bytes, points) into one batch that the writer's thread can store without
 * looking at bytes again: points grouped by series, the rest as a list in order. Runs on the caller's thread, always: a
 * batch that begins before what is durable by the time it is to be stored is not cut there but asked for again
 * (ingest_rest). Knows no SQL. */
#ifndef DPT_STORE_INTAKE_H
#define DPT_STORE_INTAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/arena.h"
#include "tracker/base/err.h"
#include "tracker/event/event.h"
#include "web/store/points/series_summary.h"
#include "web/store/write/ingest.h"

struct intake_series {
	const char *key;
	int rank; /* EVENT_RANK_DEFAULT: as the journal's rank says */
	struct sum_point *points; /* in order of arrival */
	size_t count;
	int64_t id;               /* in the store; 0 until it is stored, or left out */
};

struct intake_item {
	struct intake_item *next;
	enum event_kind kind;
	const char *key;
	const char *text;
	int64_t time_ms; /* of the record */
	int64_t end_ms;  /* EVENT_HPARAMS_*: 0 unknown */
	int64_t step;    /* EVENT_SESSION: at which a foreign writer begins; EVENT_ALERT */
	enum event_status status;
	bool segment;
	int64_t count;     /* EVENT_CONSOLE: lines; EVENT_ALERT: level; EVENT_OTHER: enum media_kind */
	const void *bytes; /* EVENT_CONSOLE: the message; EVENT_OTHER: the content */
	size_t len;
	const char *digest; /* EVENT_OTHER: of the content */
	int rank;           /* EVENT_OTHER: as of a series */
	double wall_time;   /* EVENT_OTHER */
	const struct ingest_dataset *input; /* EVENT_INPUT */
};

/* A record that cannot be applied, in words; equal ones are counted together. */
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
	struct intake_header *header; /* NULL: the bytes do not begin with one */
	struct intake_series *series;
	size_t series_count;
	uint64_t point_count;
	uint32_t *order; /* of every point of a journal, in order of arrival: the place of its series */
	struct intake_item *items, **items_end;
	struct intake_problem *problems;
	uint64_t rejected;
	uint64_t end;        /* journals: offset behind the last record taken */
	bool damaged;        /* nothing behind end can be framed */
	bool spoke;          /* any record at all */
	int64_t first_ms;    /* of the first record; INT64_MIN without */
	int64_t last_ms;     /* newest record's time */
};

/* Decodes op->bytes. Journals from a file skip damaged records and list them;
 * others end with ERR_CORRUPT there. Everything lives in the intake's arena. */
int intake_journal(struct intake *in, const struct ingest_op *op, struct err *err);

int intake_points(struct intake *in, const struct ingest_op *op, struct err *err);

int intake_init(struct intake *in, struct err *err);
void intake_done(struct intake *in);

#endif
