/* alert_watch.h: a thread that evaluates alert rules while a server runs, at most once a second. */
#ifndef DPT_STORE_ALERT_WATCH_H
#define DPT_STORE_ALERT_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "tracker/base/err.h"

struct store;
struct alert_watch;

/* post: alerts are to be posted. */
int alert_watch_start(struct alert_watch **ret, struct store *s, bool post, struct err *err);
void alert_watch_stop(struct alert_watch *w); /* before store_close; NULL is fine */

/* Evaluates alert rules on runs and stores the alerts. One thread at a time. */
struct alert_eval;

/* post: alerts are to be posted, by any process. If false, they are posted only if another process of the store
 * posts. */
int alert_eval_new(struct alert_eval **ret, struct store *s, bool post, struct err *err);

#define ALERT_EVAL_POSTING "webhook" /* the lease of the posting process */
void alert_eval_free(struct alert_eval *j); /* NULL is fine */

/* Evaluates the rules on runs changed since the last call, and on silent runs. Failures are retried by the next
 * call. */
int alert_eval_look(struct alert_eval *j, int64_t now_ms, struct err *err);

#endif
