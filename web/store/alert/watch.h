/* watch.h: a thread that holds runs against the rules while a server runs, at most once a second. */
#ifndef DPT_STORE_WATCH_H
#define DPT_STORE_WATCH_H

#include <stdbool.h>

#include "tracker/base/err.h"

struct store;
struct watch;

/* post: what is found is to be posted. */
int watch_start(struct watch **ret, struct store *s, bool post, struct err *err);
void watch_stop(struct watch *w); /* before store_close; NULL is fine */

#endif
