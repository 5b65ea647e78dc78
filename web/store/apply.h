/* apply.h: carries out one operation inside the writer's transaction. Refusals (a run that does not exist, a param that
 * contradicts) are found before anything is written; any other failure means that the whole transaction is undone. */
#ifndef DPT_STORE_APPLY_H
#define DPT_STORE_APPLY_H

#include <stdbool.h>

#include "web/store/ingest.h"
#include "web/store/intake.h"
#include "web/store/state.h"

/* How long the name of a repeatable request is kept. */
#define APPLY_IDEMPOTENCY_MS (INT64_C(7) * 24 * 3600 * 1000)

struct apply_job {
	struct ingest_op op; /* texts and arrays live in in.arena */
	struct intake in;
	int intake_code;     /* journals: why not all bytes were taken; the rest is stored */
	struct err intake_err;
	struct ingest_result res;
};

/* Fills job->res. 0 (res.code may say that it was refused), or negative: undo the transaction. */
int apply_job(struct state *st, struct apply_job *job, struct err *err);

#endif
