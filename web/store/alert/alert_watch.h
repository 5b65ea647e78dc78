/* alert_watch.h: a thread that evaluates alert rules while a server runs, at most once a second. */
#ifndef DPT_STORE_ALERT_WATCH_H
#define DPT_STORE_ALERT_WATCH_H

#include <stdbool.h>

#include "tracker/base/err.h"

struct store;
struct alert_watch;

/* post: alerts are to be posted. */
int alert_watch_start(struct alert_watch **ret, struct store *s, bool post, struct err *err);
void alert_watch_stop(struct alert_watch *w); /* before store_close; NULL is fine */

#endif
