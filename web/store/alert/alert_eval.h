/* alert_eval.h: holds runs against the rules and keeps what they find. One thread at a time. */
#ifndef DPT_STORE_ALERT_EVAL_H
#define DPT_STORE_ALERT_EVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "tracker/base/err.h"

struct alert_eval;
struct store;

/* post: what is found is to be posted, whoever posts: without it, where another process of the store does. */
int alert_eval_new(struct alert_eval **ret, struct store *s, bool post, struct err *err);

#define ALERT_EVAL_POSTING "webhook" /* the lease of those who post */
void alert_eval_free(struct alert_eval *j); /* NULL is fine */

/* Looks at what has changed since it looked last, and at silence. Whatever fails is looked at again the next time. */
int alert_eval_look(struct alert_eval *j, int64_t now_ms, struct err *err);

#endif
