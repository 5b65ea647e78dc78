/* apply.h: carries out one operation inside the writer's transaction. Refusals (a run that does not exist, a param that
 * contradicts) are found before anything is written; any other failure means that the whole transaction is undone. */
#ifndef DPT_STORE_APPLY_H
#define DPT_STORE_APPLY_H

#include <stdbool.h>

#include "web/store/write/ingest.h"
#include "web/store/write/intake.h"
#include "web/store/write/state.h"

/* How long the name of a repeatable request is kept. */
#define APPLY_IDEMPOTENCY_MS (INT64_C(7) * 24 * 3600 * 1000)

struct apply_job {
	/* NULL: op says what to do; else this does, with arg, which lives in in.arena */
	int (*fn)(struct state *st, struct apply_job *job, struct err *err);
	const void *arg;
	struct ingest_op op; /* texts and arrays live in in.arena */
	struct intake in;
	int intake_code;     /* journals: why not all bytes were taken; the rest is stored */
	struct err intake_err;
	struct ingest_result res;
	uint64_t log_rows_gone, log_points_gone; /* of the ingest log */
};

/* A batch of more series takes several rows of the ingest log: folding a row costs about as much as its series. */
#define APPLY_ROW_SERIES 2000

uint64_t apply_log_rows(const struct intake *in); /* that it takes */

/* Fills job->res. 0 (res.code may say that it was refused), or negative: undo the transaction. */
int apply_job(struct state *st, struct apply_job *job, struct err *err);

/* --- steps that several operations take -------------------------------------------------------------------- */

void apply_draw_id(char to[33]); /* 32 random hex digits */

/* Refuses the operation; returns 0. */
int apply_refuse(struct apply_job *job, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

int apply_params(struct state *st, struct state_run *r, const struct ingest_kv *kv, size_t n, struct err *err);
int apply_tags(struct state *st, struct state_run *r, const struct ingest_kv *kv, size_t n, struct err *err);

/* name, status and end_ms of op, where given. */
int apply_patch(struct state *st, struct state_run *r, const struct ingest_op *op, struct err *err);

/* 1 when it was there, 0, or negative. */
int apply_untag(struct state *st, struct state_run *r, const char *key, struct err *err);

#endif
