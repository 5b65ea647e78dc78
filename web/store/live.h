/* live.h: hears what other processes commit to the same database, and tells them what this one does: waiting streams
 * wake, and tokens are looked at anew. A thread with a connection of its own. Private to web/store/store.c. */
#ifndef DPT_STORE_LIVE_H
#define DPT_STORE_LIVE_H

#include "tracker/base/err.h"

struct store_live;
struct store;

/* Stopped before the store's other parts. */
int live_start(struct store_live **ret, struct store *s, const char *address, struct err *err);
void live_stop(struct store_live *l); /* NULL is fine */

#endif
