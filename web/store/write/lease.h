/* SPDX-License-Identifier: Apache-2.0 */
/* lease.h: work that only one process of a store does at a time. A lease is a row that its holder renews; another
 * process takes it over some seconds after the holder has died. A store that one process holds alone has every
 * lease.
 * A lease avoids duplicate work most of the time, but guarantees nothing: a process that was suspended notices late.
 * So the work must be correct without it. */
#ifndef DPT_STORE_LEASE_H
#define DPT_STORE_LEASE_H

#include "tracker/base/err.h"

#define LEASE_RENEW_S 2.0

struct store;

struct lease {
	struct store *s;
	char name[256]; /* name of the work */
	bool ours;
	double renewed_s;
};

void lease_init(struct lease *l, struct store *s, const char *name);

/* Takes or renews the lease: 1 ours, 0 another process's, negative: unknown (the database is away). Calls the
 * writer's thread from time to time, so not to be called on it. */
int lease_take(struct lease *l, struct err *err);

/* As lease_take, but ERR_BUSY when another process has it, with the holder's name. */
int lease_need(struct lease *l, struct err *err);
/* 1 if some process has the lease or had it within_ms ago; 0 otherwise, and where one process holds the store alone;
 * negative: unknown. Any thread. */
int lease_is_held(struct store *s, const char *name, int64_t within_ms, struct err *err);
void lease_give(struct lease *l); /* lets others take it at once */

#endif
