/* judge.h: holds runs against the rules and keeps what they find. One thread at a time. */
#ifndef DPT_STORE_JUDGE_H
#define DPT_STORE_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "tracker/base/err.h"

struct judge;
struct store;

/* post: what is found is to be posted, whoever posts: without it, where another process of the store does. */
int judge_new(struct judge **ret, struct store *s, bool post, struct err *err);

#define JUDGE_POSTING "webhook" /* the lease of those who post */
void judge_free(struct judge *j); /* NULL is fine */

/* Looks at what has changed since it looked last, and at silence. Whatever fails is looked at again the next time. */
int judge_look(struct judge *j, int64_t now_ms, struct err *err);

#endif
