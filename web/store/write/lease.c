/* SPDX-License-Identifier: Apache-2.0 */
/* lease.c: leases as rows, taken on the writer's thread. */
#include "web/store/write/lease.h"

#include <stdio.h>

#include "tracker/base/clock.h"
#include "web/store/base/parts.h"
#include "web/store/write/committer.h"
#include "web/store/write/transaction.h"

struct lease_request {
	struct lease *l;
	const char *holder;
	char other[128]; /* the holder, or "" */
	int answer;
};

static int ask_lease(void *arg, struct db *d, struct err *err)
{
	struct lease_request *a = arg;
	struct db_rows *q;
	int rc;

	a->answer = lease_row_take(d, a->holder, a->l->name, err);
	if (a->answer)
		return a->answer < 0 ? a->answer : 0;
	rc = db_start(d, &q, DB_lease_holder, err, "t", a->l->name);
	if (!rc && (rc = db_next(d, q, err)) > 0) {
		snprintf(a->other, sizeof(a->other), "%s", db_str(q, COL_lease_holder_holder));
		db_stop(q);
	}
	return rc < 0 ? rc : 0;
}

static int give_lease(void *arg, struct db *d, struct err *err)
{
	const struct lease_request *a = arg;

	return db_run(d, DB_lease_give, err, "tt", a->l->name, a->holder);
}

void lease_init(struct lease *l, struct store *s, const char *name)
{
	*l = (struct lease){ .s = s };
	snprintf(l->name, sizeof(l->name), "%s", name);
}

/* As lease_take; other: the holder. */
static int take_lease(struct lease *l, char other[128], struct err *err)
{
	struct lease_request a = { .l = l, .holder = l->s->live ? committer_holder(l->s->writer) : "" };
	double now = clock_mono_s();
	int rc;

	other[0] = '\0';
	if (!l->s->live || (l->ours && now < l->renewed_s + LEASE_RENEW_S))
		return 1;
	rc = committer_step(l->s->writer, ask_lease, &a, err);
	if (rc) { /* until it expires, no other process has it */
		l->ours = l->ours && now < l->renewed_s + LEASE_S - 1;
		return l->ours ? 1 : rc;
	}
	l->ours = a.answer > 0;
	l->renewed_s = now;
	snprintf(other, 128, "%s", a.other);
	return l->ours;
}

int lease_take(struct lease *l, struct err *err)
{
	char other[128];

	return take_lease(l, other, err);
}

int lease_need(struct lease *l, struct err *err)
{
	char other[128];
	int rc = take_lease(l, other, err);

	if (!rc)
		return err_set(err, ERR_BUSY, "%s: held by %s", l->name, *other ? other : "another process");
	return rc < 0 ? rc : 0;
}

int lease_is_held(struct store *s, const char *name, int64_t within_ms, struct err *err)
{
	struct db *d;
	int64_t held;
	int rc = s->live ? readers_take(s, &d, err) : 0;

	if (rc || !s->live)
		return rc;
	rc = db_int(d, &held, DB_lease_held, err, "ti", name, within_ms);
	readers_give(s, d);
	return rc;
}

void lease_give(struct lease *l)
{
	struct lease_request a = { .l = l, .holder = l->s->live ? committer_holder(l->s->writer) : "" };

	if (l->s->live && l->ours)
		committer_step(l->s->writer, give_lease, &a, NULL);
	l->ours = false;
}
