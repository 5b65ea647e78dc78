/* SPDX-License-Identifier: Apache-2.0 */
/* pg_writer.c: the writer's connection breaks, or conflicts with another process. Each writer has a row in the table
 * process, in which each of its transactions writes its number: after a commit without an answer, that row has the
 * outcome. */
#include "config.h"

#ifdef HAVE_LIBPQ

#include "tracker/base/clock.h"
#include "tracker/base/log.h"
#include "web/store/db/pg_inside.h"

#define AWAY_S 10.0 /* how long writes wait for a database that is away */
#define AGAIN_S 0.2 /* between two tries */
#define TRIES 8	    /* of one transaction */

int pg_join(struct pg_db *p, struct err *err)
{
	int rc = db_int(&p->db, &p->process, DB_pg_process_add, err, "");

	p->group = 0;
	return rc < 0 ? rc : 0;
}

/* Connects again, and finds out whether the commit that broke the connection succeeded: deleting the row waits for a
 * commit on its way and prevents a later one. */
static int reconnect_pg(struct pg_db *p, struct err *err)
{
	int64_t done = 0;
	int rc;

	pg_disconnect(p);
	p->db.session++;
	rc = pg_connect(p, err);
	if (!rc && p->process) {
		rc = db_int(&p->db, &done, DB_pg_process_ask, err, "i", p->process);
		if (rc >= 0) {
			p->committed = rc > 0 && p->committing && done == p->group;
			p->committing = false;
			p->process = 0;
			rc = 0;
		}
	}
	if (!rc)
		rc = pg_join(p, err);
	if (rc)
		p->lost = true;
	return rc;
}

/* Tries once. Logs when the database goes away and when it is back. */
static int reach_pg(struct pg_db *p, struct err *err)
{
	struct err why = ERR_INIT;
	int rc = reconnect_pg(p, &why);

	if (rc && err)
		*err = why;
	if (!rc)
		p->away_since_s = 0;
	else if (!p->away_since_s)
		p->away_since_s = p->began_s;
	if (rc && !atomic_exchange(&p->db.away, true))
		log_warn("%s: changes are refused until it is back", why.text);
	else if (!rc && atomic_exchange(&p->db.away, false))
		log_info("the database is back: changes are stored again");
	return rc;
}

int pg_reach_in_time(struct pg_db *p, struct err *err)
{
	int rc = 0;

	if (!p->began_s || p->away_since_s)
		p->began_s = clock_mono_s();
	while (p->lost && (rc = reach_pg(p, err)) && !atomic_load(&p->db.hurried) &&
	       clock_mono_s() < p->away_since_s + AWAY_S)
		clock_sleep_s(AGAIN_S);
	return rc;
}

int pg_await_outcome(struct pg_db *p, struct err *err)
{
	if (!p->began_s)
		p->began_s = clock_mono_s();
	while (reach_pg(p, err)) {
		if (clock_mono_s() > p->away_since_s + AWAY_S)
			return err_set(err, ERR_BUSY,
				       "lost the database during the commit: this may be stored or not: try again");
		clock_sleep_s(AGAIN_S);
	}
	return p->committed ? 0
			    : err_set(err, ERR_BUSY,
				      "lost the connection to the database: nothing of this was stored: try again");
}

bool pg_again(struct db *d, int rc)
{
	struct pg_db *p = pg_db(d);

	p->tries = rc == ERR_BUSY && !p->away_since_s && p->tries + 1 < TRIES ? p->tries + 1 : 0;
	return p->tries;
}

void pg_reach_now(struct db *d)
{
	if (pg_db(d)->lost)
		reach_pg(pg_db(d), NULL);
}

#endif
