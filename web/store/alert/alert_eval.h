/* alert_eval.h: evaluates alert rules on runs and stores the alerts. One thread at a time. */
#ifndef DPT_STORE_ALERT_EVAL_H
#define DPT_STORE_ALERT_EVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "tracker/base/err.h"

struct alert_eval;
struct store;

/* post: alerts are to be posted, by any process. If false, they are posted only if another process of the store
 * posts. */
int alert_eval_new(struct alert_eval **ret, struct store *s, bool post, struct err *err);

#define ALERT_EVAL_POSTING "webhook" /* the lease of the posting process */
void alert_eval_free(struct alert_eval *j); /* NULL is fine */

/* Evaluates the rules on runs changed since the last call, and on silent runs. Failures are retried by the next
 * call. */
int alert_eval_look(struct alert_eval *j, int64_t now_ms, struct err *err);

#endif
