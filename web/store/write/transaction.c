/* SPDX-License-Identifier: Apache-2.0 */
/* transaction.c: begin, commit, undo, and the wait for a database that is away; what is returned to the system
 * afterwards. */
#include "web/store/write/transaction.h"

#include <malloc.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"
#include "web/store/write/queue.h"

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
	malloc_trim(0);
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

#define AWAY_S 10.0 /* how long writes wait for a database that is away */
#define AGAIN_S 0.2 /* between two tries */

/* Tries once; a new connection invalidates the cached state. Logs when the database is lost and when it is back. */
static int try_database(struct transaction *t, bool *ret_committed, struct err *err)
{
	int rc = db_recover(t->db, ret_committed, err);

	state_drop(t->state);
	if (rc && !atomic_exchange(&t->away, true))
		log_warn("%s: changes are refused until it is back", err->text);
	else if (!rc && atomic_exchange(&t->away, false))
		log_info("the database is back: changes are stored again");
	return rc;
}

static int reach_database(struct transaction *t, bool *ret_committed, struct err *err)
{
	int rc = try_database(t, ret_committed, err);

	if (!rc)
		t->away_since_s = 0;
	else if (!t->away_since_s)
		t->away_since_s = t->began_s;
	return rc;
}

static int reach_in_time(struct transaction *t, struct err *err)
{
	bool committed;
	int rc;

	while ((rc = reach_database(t, &committed, err)) && !queue_ended(t->queue) &&
	       clock_mono_s() < t->away_since_s + AWAY_S)
		clock_sleep_s(AGAIN_S);
	return rc;
}

void transaction_look(struct transaction *t)
{
	struct err err = ERR_INIT;
	bool committed;

	if (db_lost(t->db) && !try_database(t, &committed, &err))
		t->away_since_s = 0;
}

int transaction_begin(struct transaction *t, struct err *err)
{
	int rc;

	if (!t->began_s)
		t->began_s = clock_mono_s();
	rc = db_lost(t->db) ? reach_in_time(t, err) : db_still_there(t->db, err);
	state_begin(t->state);
	return rc ? rc : db_run(t->db, DB_begin, err, "");
}

/* The connection broke during the commit: the answer waits until the outcome is known, but not for a database that
 * stays away. */
static int wait_for_outcome(struct transaction *t, struct err *err)
{
	bool committed = false;

	while (reach_database(t, &committed, err)) {
		if (clock_mono_s() > t->away_since_s + AWAY_S)
			return err_set(err, ERR_BUSY,
				       "lost the database during the commit: this may be stored or not: try again");
		clock_sleep_s(AGAIN_S);
	}
	return committed ? 0 : err_set(err, ERR_BUSY,
				       "lost the connection to the database: nothing of this was stored: try again");
}

int transaction_finish(struct transaction *t, int rc, struct err *err)
{
	bool committing = !rc;

	if (!rc)
		rc = db_run(t->db, DB_commit, err, "");
	if (rc && committing && db_lost(t->db))
		rc = wait_for_outcome(t, err);
	if (rc) {
		if (db_in_transaction(t->db))
			db_run(t->db, DB_rollback, NULL, "");
		state_drop(t->state);
	}
	if (!rc || !db_lost(t->db) || t->away_since_s)
		t->began_s = 0;
	return rc;
}

/* --- leases --------------------------------------------------------------------------------------------------- */

int lease_row_take(struct db *d, const char *holder, const char *name, struct err *err)
{
	int64_t one;

	if (!db_shared(d))
		return 1;
	return db_lost(d) ? err_set(err, ERR_BUSY, "the database cannot be reached")
			  : db_int(d, &one, DB_lease_take, err, "tti", name, holder, (int64_t)LEASE_S * 1000);
}
