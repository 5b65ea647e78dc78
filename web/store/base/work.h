/* work.h: long work on a thread of its own, one piece at a time. Knows nothing of what is done. */
#ifndef DPT_STORE_WORK_H
#define DPT_STORE_WORK_H

#include <stdbool.h>

#include "tracker/base/err.h"

struct work;

struct work *work_new(void); /* NULL when out of memory */
void work_free(struct work *w); /* ends what runs and waits for it; NULL is fine */

/* ERR_BUSY: some runs. ERR_CANCELED: it was ended. */
int work_start(struct work *w, void (*fn)(void *arg), void (*then)(void *arg), void *arg, struct err *err);

void work_cancel(struct work *w); /* what runs shall end soon */
void work_end(struct work *w);    /* the same, waits for it, and no other begins */

/* Whether the work that runs shall end; whoever works in many steps asks between them. */
bool work_canceled(const struct work *w);

#endif
