/* lease.h: work that one process of a store does at a time, whoever of them: a lease is a row that its holder renews,
 * and that another takes over some seconds after the holder has died. A store that one process holds alone has every
 * lease. It keeps two processes from doing the same at once, most of the time: one that was stopped for a while may
 * find out late, so what is done under a lease must be right without it, too. */
#ifndef DPT_STORE_LEASE_H
#define DPT_STORE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "tracker/base/err.h"

#define LEASE_RENEW_S 2.0

struct store;

struct lease {
	struct store *s;
	char name[256]; /* what is done */
	bool ours;
	double renewed_s;
};

void lease_init(struct lease *l, struct store *s, const char *name);

/* 1 ours, renewed when that is due; 0 another process's; negative: nobody can say (the database is away). Asks the
 * writer's thread now and then, so not on it. */
int lease_take(struct lease *l, struct err *err);

/* The same for work of which nobody waits to take part: ERR_BUSY says who is at it. */
int lease_need(struct lease *l, struct err *err);
/* Whether some process has it, or had it within_ms ago: 1, 0 (also where one process holds the store alone), negative:
 * nobody can say. Any thread. */
int lease_is_held(struct store *s, const char *name, int64_t within_ms, struct err *err);
void lease_give(struct lease *l); /* others need not wait for its end */

#endif
