/* work.h: one long piece of work on an open store at a time, on a thread of its own. Private to web/store; the calls of
 * others are in upkeep.h. */
#ifndef DPT_STORE_WORK_H
#define DPT_STORE_WORK_H

#include <stdbool.h>

#include "tracker/base/err.h"

struct store;
struct work;

struct work *work_new(void); /* NULL when out of memory */
void work_free(struct work *w); /* ends what runs and waits for it; NULL is fine */

/* ERR_BUSY: some runs. ERR_CANCELED: it was ended. */
int work_start(struct work *w, void (*fn)(void *arg), void (*then)(void *arg), void *arg, struct err *err);

/* Whether the work that runs shall end; whoever works in many steps asks between them. */
bool work_canceled(const struct store *s);

#endif
