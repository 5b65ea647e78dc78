/* background_job.h: long work on a thread of its own, one piece at a time. Knows nothing of what is done. */
#ifndef DPT_STORE_BACKGROUND_JOB_H
#define DPT_STORE_BACKGROUND_JOB_H

#include <stdbool.h>

#include "tracker/base/err.h"

struct background_job;

struct background_job *background_job_new(void); /* NULL when out of memory */
void background_job_free(struct background_job *w); /* ends what runs and waits for it; NULL is fine */

/* ERR_BUSY: some runs. ERR_CANCELED: it was ended. */
int background_job_start(struct background_job *w, void (*fn)(void *arg), void (*then)(void *arg), void *arg, struct err *err);

void background_job_cancel(struct background_job *w); /* what runs shall end soon */
void background_job_end(struct background_job *w);    /* the same, waits for it, and no other begins */

/* Whether the work that runs shall end; whoever works in many steps asks between them. */
bool background_job_canceled(const struct background_job *w);

#endif
