/* SPDX-License-Identifier: Apache-2.0 */
/* readers.c: a stack of idle connections under a lock. A thread of its own connects to addresses, because threads
 * that answer requests must not connect to anything (web/server/sandbox.c). */
#include "tracker/base/thread.h"
#include "web/store/db/db.h"

#include <stdlib.h>

#include "tracker/base/clock.h"
#include "tracker/mem/mem.h"
#include "web/store/base/parts.h"

#define MAX_READERS 64

#define REST_S 4    /* of the connections to a file that were idle for this long, all but one are closed: each uses
		     * 0.3 MB, and reopening takes a millisecond */
#define AGAIN_S 0.5 /* after a failed connect */

struct readers {
	char path[PATH_MAX];
	pthread_mutex_t lock;
	pthread_cond_t given;
	struct db *idle[MAX_READERS];
	double given_s[MAX_READERS]; /* when each was given back: the oldest first */
	int idle_count, open_count, max;
	/* addresses only */
	bool connects, stop;
	pthread_t connector;
	pthread_cond_t wanted;
	int wanted_count, waiting; /* connections to open; takers waiting for any */
	struct err away;	   /* error of the last connect; its code is 0 after success */
};

/* Under the lock: adds an idle connection. */
static void put_idle_reader(struct readers *p, struct db *d)
{
	p->given_s[p->idle_count] = clock_mono_s();
	p->idle[p->idle_count++] = d;
}

/* Under the lock. */
static void connect_reader(struct readers *p)
{
	struct err err = ERR_INIT;
	struct db *d = NULL;
	int rc;

	p->wanted_count--;
	pthread_mutex_unlock(&p->lock);
	rc = db_open_reader(&d, p->path, &err);
	if (rc)
		clock_sleep_s(AGAIN_S);
	pthread_mutex_lock(&p->lock);
	if (rc)
		p->open_count--;
	else
		put_idle_reader(p, d);
	p->away = err;
	p->away.code = rc;
	pthread_cond_broadcast(&p->given);
}

static void *run_reader_connector(void *arg)
{
	struct readers *p = arg;

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		if (p->wanted_count)
			connect_reader(p);
		else
			pthread_cond_wait(&p->wanted, &p->lock);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

int readers_new(struct readers **ret, const char *path, int max, struct err *err)
{
	struct readers *p = mem_zalloc(sizeof(*p));

	memcpy(p->path, path, strlen(path) + 1);
	p->max = max < 1 ? 4 : max > MAX_READERS ? MAX_READERS : max;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->given, NULL);
	pthread_cond_init(&p->wanted, NULL);
	if (db_is_address(path) && thread_start(&p->connector, run_reader_connector, p)) {
		readers_free(p);
		return err_set(err, ERR_IO, "store: cannot start a thread");
	}
	p->connects = db_is_address(path);
	*ret = p;
	return 0;
}

int readers_new_alone(struct readers **ret, const char *path, struct err *err)
{
	struct readers *p;
	struct db *d;
	int rc = db_open_alone(&d, path, err);

	if (rc)
		return rc;
	rc = readers_new(&p, path, 1, err);
	if (rc) {
		db_close(d);
		return rc;
	}
	put_idle_reader(p, d);
	p->open_count = 1;
	*ret = p;
	return 0;
}

void readers_free(struct readers *p)
{
	int i;

	if (!p)
		return;
	if (p->connects) {
		pthread_mutex_lock(&p->lock);
		p->stop = true;
		pthread_cond_signal(&p->wanted);
		pthread_mutex_unlock(&p->lock);
		pthread_join(p->connector, NULL);
	}
	for (i = 0; i < p->idle_count; i++)
		db_close(p->idle[i]);
	pthread_cond_destroy(&p->wanted);
	pthread_cond_destroy(&p->given);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* Under the lock: takes an idle connection or waits for one; fails while the address cannot be reached. */
static int take_connected_reader(struct readers *p, struct db **ret, struct err *err)
{
	int rc = 0;

	while (!rc && !p->idle_count) {
		if (p->open_count < p->max && p->wanted_count <= p->waiting) {
			p->open_count++;
			p->wanted_count++;
			pthread_cond_signal(&p->wanted);
		}
		if (p->away.code) {
			rc = p->away.code;
			if (err)
				*err = p->away;
			break;
		}
		p->waiting++;
		pthread_cond_wait(&p->given, &p->lock);
		p->waiting--;
	}
	if (!rc)
		*ret = p->idle[--p->idle_count];
	return rc;
}

/* Takes an idle connection, or opens one if fewer than max are open. */
static int take_reader(struct readers *p, struct db **ret, struct err *err)
{
	struct db *d = NULL;
	int rc = 0;

	pthread_mutex_lock(&p->lock);
	if (p->connects) {
		rc = take_connected_reader(p, ret, err);
		pthread_mutex_unlock(&p->lock);
		return rc;
	}
	while (!p->idle_count && p->open_count == p->max)
		pthread_cond_wait(&p->given, &p->lock);
	if (p->idle_count)
		d = p->idle[--p->idle_count];
	else
		p->open_count++;
	pthread_mutex_unlock(&p->lock);
	if (!d)
		rc = db_open_reader(&d, p->path, err);
	if (rc) {
		pthread_mutex_lock(&p->lock);
		p->open_count--;
		pthread_cond_signal(&p->given);
		pthread_mutex_unlock(&p->lock);
		return rc;
	}
	*ret = d;
	return 0;
}

static int take_snapshot_reader(struct store *s, struct db **ret, struct err *err)
{
	struct db *d;
	int64_t rev;
	int rc = take_reader(s->readers, &d, err);

	if (rc)
		return rc;
	db_attach(d, s->archives);
	rc = db_run(d, DB_begin_read, err, "");
	/* A deferred transaction of a file gets its snapshot with the first read. At an address that would cost a
	 * round trip, so the taker's first query does it. */
	if (!rc && !db_shared(d) && (rc = db_int(d, &rev, DB_rev_get, err, "")) > 0)
		rc = 0;
	*ret = d;
	return rc;
}

/* Takes a reader without a set of experiments. */
static int take_any_reader(struct store *s, struct db **ret, struct err *err)
{
	struct db *d = NULL;
	bool broken = true;
	int tries, rc = 0;

	/* After the database was away, every idle connection is broken. */
	for (tries = 0; broken && tries <= MAX_READERS; tries++) {
		rc = take_snapshot_reader(s, &d, err);
		broken = rc && d && db_lost(d);
		if (rc && d)
			readers_give(s, d);
		d = rc ? NULL : d;
	}
	if (!rc)
		*ret = d;
	return rc;
}

int readers_take(struct store *s, struct db **ret, struct err *err)
{
	if (s->restriction)
		return err_set(err, ERR_DENIED, "this needs a token for all experiments");
	return take_any_reader(s, ret, err);
}

int readers_take_permitted(struct store *s, struct db **ret, struct err *err)
{
	struct db *d;
	int rc = take_any_reader(s, &d, err);

	if (!rc && s->restriction && (rc = permitted_take(s, d, err)))
		readers_give(s, d);
	if (!rc)
		*ret = d;
	return rc;
}

/* Under the lock: takes the connections to close; returns their number. */
static int take_rested_reader(struct readers *p, struct db *ret[])
{
	double until = clock_mono_s() - REST_S;
	int n = 0;

	while (!p->connects && n + 1 < p->idle_count && p->given_s[n] < until)
		n++;
	memcpy(ret, p->idle, (size_t)n * sizeof(*ret));
	p->idle_count -= n;
	p->open_count -= n;
	memmove(p->idle, p->idle + n, (size_t)p->idle_count * sizeof(*p->idle));
	memmove(p->given_s, p->given_s + n, (size_t)p->idle_count * sizeof(*p->given_s));
	return n;
}

void readers_give(struct store *s, struct db *d)
{
	struct readers *p = s->readers;
	struct db *rested[MAX_READERS];
	bool lost;
	int n;

	if (!d)
		return;
	permitted_give(s, d);
	if (db_in_transaction(d))
		db_run(d, DB_rollback, NULL, "");
	lost = db_lost(d);
	if (lost)
		db_close(d);
	pthread_mutex_lock(&p->lock);
	if (lost)
		p->open_count--;
	else
		put_idle_reader(p, d);
	n = take_rested_reader(p, rested);
	pthread_cond_signal(&p->given);
	pthread_mutex_unlock(&p->lock);
	while (n)
		db_close(rested[--n]);
}

/* Reads the row and the experiment of a run, or of a removed one: 1, or 0: the caller may see no such run. */
static int find_permitted_run(struct db *d, enum db_query which, const char *uuid, int64_t *ret_id, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, which, err, "t", uuid);

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc;
	*ret_id = db_i64(q, COL_run_id_of_id);
	rc = permitted(d, db_i64(q, COL_run_id_of_experiment_id));
	db_stop(q);
	return rc;
}

int readers_missing(struct db *d, const char *uuid, struct err *err)
{
	int64_t id;
	int rc = find_permitted_run(d, DB_gone_of, uuid, &id, err);

	if (rc < 0)
		return rc;
	return rc ? err_set(err, ERR_GONE, "run %s was deleted and removed for good", uuid)
		  : err_set(err, ERR_NOENT, "there is no run %s", uuid);
}

int readers_take_run(struct store *s, struct db **ret, const char *uuid, int64_t *ret_id, struct err *err)
{
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	rc = find_permitted_run(d, DB_run_id_of, uuid, ret_id, err);
	if (rc <= 0) {
		rc = rc ? rc : readers_missing(d, uuid, err);
		readers_give(s, d);
		return rc;
	}
	*ret = d;
	return 0;
}
