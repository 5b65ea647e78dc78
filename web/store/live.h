/* live.h: notifies this process of commits by other processes to the same database, and them of its own. Waiting
 * streams wake up, and tokens are read again. A thread with its own connection. Private to web/store/store.c. */
#ifndef DPT_STORE_LIVE_H
#define DPT_STORE_LIVE_H

#include "tracker/base/err.h"

struct store_live;
struct store;

/* Stop it before the other parts of the store. */
int live_start(struct store_live **ret, struct store *s, const char *address, struct err *err);
void live_stop(struct store_live *l); /* NULL is fine */

#endif
