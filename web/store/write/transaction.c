/* SPDX-License-Identifier: Apache-2.0 */
/* transaction.c: the database's transaction and the cache of its rows; what is returned to the system afterwards. */
#include "web/store/write/transaction.h"

#include <malloc.h>

#include "tracker/base/clock.h"
#include "web/store/state/state.h"

/* --- returning memory ----------------------------------------------------------------------------------------- */

#define FREE_PAGES_KEPT 2048 /* the log reuses them soon */
#define FREE_PAGES_STEP 512  /* returned per transaction */
#define TRIM_S 30.0	     /* interval of returning memory without a pause */
#define SHRINK_S 1.0

static int vacuum_some(struct db *d)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_vacuum_some, NULL, "");

	while (!rc && (rc = db_next(d, q, NULL)) > 0)
		rc = 0;
	return rc;
}

/* Each thread's heap keeps the memory of its largest request until malloc_trim. */
static void trim_now(struct trim *s)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
	s->trimmed_s = clock_mono_s();
}

void trim_trim(struct trim *s)
{
	if (clock_mono_s() >= s->trimmed_s + TRIM_S)
		trim_now(s);
}

void trim_give_back(struct trim *s, struct db *d)
{
	int64_t pages = 0;

	s->some = false;
	if (db_int(d, &pages, DB_free_pages, NULL, "") > 0 && pages > FREE_PAGES_KEPT) {
		vacuum_some(d);
		s->some = pages > FREE_PAGES_KEPT + FREE_PAGES_STEP;
	}
	trim_now(s);
}

void trim_shrink(struct db *d)
{
	double until_s = clock_mono_s() + SHRINK_S;
	int64_t pages = 0;

	while (db_int(d, &pages, DB_free_pages, NULL, "") > 0 && pages > 0 && clock_mono_s() < until_s)
		if (vacuum_some(d))
			break;
}

/* --- transactions --------------------------------------------------------------------------------------------- */

int transaction_begin(struct transaction *t, struct err *err)
{
	int rc = db_begin(t->db, err);

	state_begin(t->state);
	return rc;
}

int transaction_finish(struct transaction *t, int rc, struct err *err)
{
	rc = db_end(t->db, rc, err);
	if (rc)
		state_drop(t->state);
	return rc;
}

int lease_row_take(struct db *d, const char *holder, const char *name, struct err *err)
{
	int64_t one;

	return db_int(d, &one, DB_lease_take, err, "tti", name, holder, (int64_t)LEASE_S * 1000);
}
