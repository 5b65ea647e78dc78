/* SPDX-License-Identifier: Apache-2.0 */
/* db_pg.c: PostgreSQL as an engine. In a transaction, a query without rows is only sent; the next read, at the
 * latest the commit, reports its failure. Queries with rows are also only sent, until a row is read. So a group
 * costs one round trip plus one for each read that depends on another. */
#include "config.h"

#include "tracker/mem/mem.h"
#include "web/store/db/engine.h"

#ifdef HAVE_LIBPQ

#include <endian.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "web/store/db/pg_inside.h"

#define WRITER_ANSWER_S 12 /* statements of writers are cancelled after 10 s */
#define READER_ANSWER_S 15
#define LONG_ANSWER_S 600

static const char schema[] =
#include "web/store/db/schema_pg.def"
	;

/* --- queries ------------------------------------------------------------------------------------------------ */

static int pg_start(struct db *d, struct db_rows **ret, const struct db_call *c, struct err *err)
{
	struct pg_db *p = pg_db(d);
	int rc = pg_send(p, c, err);

	if (rc)
		return rc;
	p->rows[c->q].asked = true;
	*ret = &p->rows[c->q].rows;
	return 0;
}

/* Before a rollback: errors of the transaction are irrelevant. */
static void discard_pg_answers(struct pg_db *p)
{
	pg_settle(p, NULL);
	p->untold = p->lost;
}

/* Ends a read transaction without waiting: the answer is read with those of the next transaction. */
static int end_pg_read(struct pg_db *p, struct err *err)
{
	int rc;

	discard_pg_answers(p);
	rc = pg_send_plain(p, DB_rollback, err, "");
	pg_push(p);
	p->open = false;
	return rc;
}

/* Ends a transaction; pending queries fail or are undone with it. */
static int end_pg_transaction(struct pg_db *p, enum db_query q, struct err *err)
{
	bool commit = q == DB_commit;
	int rc = 0;

	if (!p->open || p->lost)
		return commit ? pg_settle(p, err) : 0;
	if (p->reading && !commit)
		return end_pg_read(p, err);
	if (commit && p->process)
		rc = pg_send_plain(p, DB_pg_process_done, err, "ii", p->process, p->group);
	if (!commit)
		discard_pg_answers(p);
	if (!rc)
		rc = pg_send_plain(p, q, err, "");
	p->committing = commit && !rc;
	if (!rc)
		rc = pg_settle(p, err);
	/* A failed transaction answers COMMIT with ROLLBACK. */
	if (!rc && commit && !strcmp(p->pq.cmdStatus(p->rows[q].res), "ROLLBACK"))
		rc = err_set(err, ERR_BUSY, "%s: the transaction was rolled back", p->name);
	p->committing = p->committing && p->lost && p->process;
	if (!rc || p->lost)
		p->open = false;
	if (p->committing)
		rc = pg_await_outcome(p, err);
	if (!rc || !p->lost)
		p->began_s = 0;
	if (!rc && commit)
		p->tries = 0;
	return rc;
}

static int begin_pg_transaction(struct pg_db *p, enum db_query q, struct err *err)
{
	int rc;

	if (q == DB_begin_read)
		pg_look(p);
	rc = pg_send_plain(p, q, err, "");
	if (rc)
		return rc;
	p->open = true;
	p->reading = q == DB_begin_read;
	if (q == DB_begin_read)
		return 0;
	p->group++;
	p->answer_s = q == DB_begin ? WRITER_ANSWER_S : LONG_ANSWER_S;
	return pg_send_plain(p, q == DB_begin ? DB_pg_write_limits : DB_pg_long_limits, err, "");
}

static int pg_begin(struct db *d, struct err *err)
{
	int rc = pg_reach_in_time(pg_db(d), err);

	return rc ? rc : begin_pg_transaction(pg_db(d), DB_begin, err);
}

static int pg_run(struct db *d, const struct db_call *c, struct err *err)
{
	struct pg_db *p = pg_db(d);
	enum db_query q = c->q;
	int rc;

	if (q == DB_begin || q == DB_begin_long || q == DB_begin_read)
		return begin_pg_transaction(p, q, err);
	if (q == DB_commit || q == DB_rollback)
		return end_pg_transaction(p, q, err);
	rc = pg_send(p, c, err);
	return rc || p->open ? rc : pg_settle(p, err);
}

static int pg_run_values(struct db *d, enum db_query q, const struct db_value *v, int n, struct err *err)
{
	struct pg_db *p = pg_db(d);
	int rc = pg_send_values(p, q, v, n, err);

	return rc || p->open ? rc : pg_settle(p, err);
}

static void pg_stop(struct db_rows *q)
{
	pg_rows(q)->asked = false;
	pg_rows(q)->at = INT_MAX;
}

static int pg_next(struct db *d, struct db_rows *q, struct err *err)
{
	struct pg_db *p = pg_db(d);
	struct pg_rows *r = pg_rows(q);
	int rc = r->asked ? pg_settle(p, err) : 0;

	if (rc)
		return rc;
	if (r->res && r->at < INT_MAX && ++r->at < p->pq.ntuples(r->res))
		return 1;
	p->pq.clear(r->res);
	r->res = NULL;
	return 0;
}

/* --- the current row ---------------------------------------------------------------------------------------- */

/* Reads a big-endian integer of 1, 2, 4 or 8 bytes. */
static uint64_t read_binary_bits(const struct pg_rows *r, enum db_column column)
{
	uint64_t wide;
	uint32_t word;
	uint16_t half;
	const char *at = r->pq->getvalue(r->res, r->at, (int)column);

	switch (r->pq->getlength(r->res, r->at, (int)column)) {
	case 8:
		memcpy(&wide, at, 8);
		return be64toh(wide);
	case 4:
		memcpy(&word, at, 4);
		return (uint64_t)(int64_t)(int32_t)be32toh(word);
	case 2:
		memcpy(&half, at, 2);
		return (uint64_t)(int64_t)(int16_t)be16toh(half);
	case 1:
		return (uint64_t)*at;
	default:
		return 0;
	}
}

enum { TYPE_INT8 = 20, TYPE_INT4 = 23, TYPE_FLOAT8 = 701 };

static double read_binary_real(const struct pg_rows *r, enum db_column column)
{
	uint64_t bits = read_binary_bits(r, column);
	double d;

	if (r->pq->ftype(r->res, (int)column) != TYPE_FLOAT8)
		return (double)(int64_t)bits;
	memcpy(&d, &bits, sizeof(d));
	return d;
}

static int64_t pg_i64(struct db_rows *q, enum db_column column)
{
	const struct pg_rows *r = pg_rows(q);

	if (r->pq->ftype(r->res, (int)column) == TYPE_FLOAT8)
		return (int64_t)read_binary_real(r, column);
	return (int64_t)read_binary_bits(r, column);
}

static bool pg_null(struct db_rows *q, enum db_column column)
{
	const struct pg_rows *r = pg_rows(q);

	return r->pq->getisnull(r->res, r->at, (int)column);
}

static double pg_f64(struct db_rows *q, enum db_column column)
{
	return pg_null(q, column) ? NAN : read_binary_real(pg_rows(q), column);
}

static const char *pg_str(struct db_rows *q, enum db_column column)
{
	struct pg_rows *r = pg_rows(q);
	Oid type = r->pq->ftype(r->res, (int)column);

	if (pg_null(q, column))
		return NULL;
	if (type != TYPE_INT8 && type != TYPE_INT4)
		return r->pq->getvalue(r->res, r->at, (int)column);
	snprintf(r->number, sizeof(r->number), "%lld", (long long)read_binary_bits(r, column));
	return r->number;
}

static const void *pg_bytes(struct db_rows *q, enum db_column column, size_t *ret_n)
{
	const struct pg_rows *r = pg_rows(q);

	*ret_n = (size_t)r->pq->getlength(r->res, r->at, (int)column);
	return pg_str(q, column);
}

/* --- state of a connection ---------------------------------------------------------------------------------- */

static int64_t pg_last_id(struct db *d)
{
	pg_settle(pg_db(d), NULL);
	return pg_db(d)->last_id;
}

static int64_t pg_changed(struct db *d)
{
	pg_settle(pg_db(d), NULL);
	return pg_db(d)->changed;
}

static bool pg_in_transaction(struct db *d)
{
	return pg_db(d)->open;
}

static int pg_failed(struct db *d, struct err *err, const char *doing)
{
	return err_set(err, pg_db(d)->error.code ? pg_db(d)->error.code : ERR_IO, "%s: %s", doing,
		       pg_db(d)->error.text);
}

static bool pg_lost(struct db *d)
{
	return pg_db(d)->lost;
}

static void pg_wait(struct db *d, int fd, int ms)
{
	struct pg_db *p = pg_db(d);
	struct pollfd both[] = { { .fd = p->pq.socket(p->c), .events = POLLIN }, { .fd = fd, .events = POLLIN } };
	PGnotify *n;

	if (poll(both, 2, ms) > 0 && both[0].revents)
		p->pq.consumeInput(p->c);
	while ((n = p->pq.notifies(p->c)))
		p->pq.freemem(n);
}

/* --- opening ------------------------------------------------------------------------------------------------ */

static void pg_close(struct db *d)
{
	struct pg_db *p = pg_db(d);

	if (p->alone)
		pg_close(&p->alone->db);
	if (p->c)
		pg_disconnect(p);
	free(p);
}

static int make_pg_db(struct pg_db **ret, const char *address, bool writes, struct err *err)
{
	struct pg_db *p = mem_zalloc(sizeof(*p));
	int rc;

	p->db.engine = &pg_engine;
	p->writes = writes;
	p->answer_s = writes ? WRITER_ANSWER_S : READER_ANSWER_S;
	rc = pgso_load(&p->pq, err);
	if (!rc && snprintf(p->address, sizeof(p->address), "%s", address) >= (int)sizeof(p->address))
		rc = err_set(err, ERR_USAGE, "the address of the database is too long");
	if (!rc)
		rc = pg_connect(p, err);
	if (rc) {
		free(p);
		return rc;
	}
	*ret = p;
	return 0;
}

static int read_pg_version(struct pg_db *p, int *ret, struct err *err)
{
	int64_t n = 0;
	int rc = db_int(&p->db, &n, DB_pg_tables, err, "");

	if (rc > 0 && n)
		rc = db_int(&p->db, &n, DB_version_get, err, "");
	*ret = (int)n;
	return rc < 0 ? rc : 0;
}

static int check_pg_version(struct pg_db *p, struct err *err)
{
	int version = 0, rc = read_pg_version(p, &version, err);

	if (rc || version == db_version)
		return rc;
	if (!version)
		return err_set(err, ERR_USAGE, "%s has no store yet: create one with dptrack db init", p->name);
	rc = db_check_version(p->name, version, err);
	return rc ? rc : err_set(err, ERR_USAGE, "%s has a store of version %d, expected %d: run dptrack db upgrade",
				 p->name, version, db_version);
}

int pg_open_reader(struct db **ret, const char *address, struct err *err)
{
	struct pg_db *p;
	int rc = make_pg_db(&p, address, false, err);

	if (!rc)
		*ret = &p->db;
	return rc;
}

int pg_open_writer(struct db **ret, const char *address, struct err *err)
{
	struct pg_db *p;
	int rc = make_pg_db(&p, address, true, err);

	if (rc)
		return rc;
	rc = check_pg_version(p, err);
	if (!rc)
		rc = pg_join(p, err);
	if (rc) {
		pg_close(&p->db);
		return rc;
	}
	*ret = &p->db;
	return 0;
}

static struct db *pg_alone(struct db *d)
{
	struct pg_db *p = pg_db(d);

	if (p->alone && p->alone->lost) {
		pg_close(&p->alone->db);
		p->alone = NULL;
	}
	/* Without it the statement joins the transaction: correct, but others may wait for it. */
	if (!p->alone && make_pg_db(&p->alone, p->address, true, NULL))
		return d;
	return &p->alone->db;
}

/* --- tables --------------------------------------------------------------------------------------------------- */

int pg_version(const char *address, int *ret, struct err *err)
{
	struct pg_db *p;
	int rc = make_pg_db(&p, address, false, err);

	if (rc)
		return rc;
	rc = read_pg_version(p, ret, err);
	pg_close(&p->db);
	return rc;
}

/* Runs several statements as one transaction. */
static int run_pg_script(struct pg_db *p, const char *text, const char *doing, struct err *err)
{
	PGresult *r;
	int rc = 0;

	if (!p->pq.exitPipelineMode(p->c))
		return err_set(err, ERR_IO, "%s: there are unread answers", p->name);
	r = p->pq.exec(p->c, text);
	if (p->pq.resultStatus(r) != PGRES_COMMAND_OK)
		rc = err_set(err, ERR_IO, "%s: %s: %.*s", p->name, doing, (int)strcspn(p->pq.errorMessage(p->c), "\n"),
			     p->pq.errorMessage(p->c));
	p->pq.clear(r);
	return rc;
}

int pg_init(const char *address, struct err *err)
{
	struct pg_db *p;
	int version = 0, rc = make_pg_db(&p, address, true, err);

	if (rc)
		return rc;
	rc = read_pg_version(p, &version, err);
	if (!rc && version)
		rc = err_set(err, ERR_EXISTS, "%s already has a store (version %d)", p->name, version);
	if (!rc)
		rc = run_pg_script(p, schema, "creating the tables", err);
	pg_close(&p->db);
	return rc;
}

/* Each version is one transaction, so a failure leaves the previous version. */
static int run_upgrades(struct pg_db *p, int version, struct err *err)
{
	int rc = version ? db_check_version(p->name, version, err)
			 : err_set(err, ERR_NOENT, "%s has no store yet: create one with dptrack db init", p->name);

	for (const struct db_migration *m = db_pg_migrations; m->version && !rc; m++)
		if (m->version > version)
			rc = run_pg_script(p, m->text, "upgrading the store", err);
	return rc;
}

int pg_upgrade(const char *address, int *ret_from, struct err *err)
{
	struct pg_db *p;
	int rc = make_pg_db(&p, address, true, err);

	if (rc)
		return rc;
	rc = read_pg_version(p, ret_from, err);
	if (!rc)
		rc = run_upgrades(p, *ret_from, err);
	pg_close(&p->db);
	return rc;
}

const struct db_engine pg_engine = {
	.close = pg_close,
	.run = pg_run,
	.run_values = pg_run_values,
	.start = pg_start,
	.next = pg_next,
	.stop = pg_stop,
	.i64 = pg_i64,
	.f64 = pg_f64,
	.str = pg_str,
	.bytes = pg_bytes,
	.null = pg_null,
	.last_id = pg_last_id,
	.changed = pg_changed,
	.in_transaction = pg_in_transaction,
	.failed = pg_failed,
	.begin = pg_begin,
	.again = pg_again,
	.look = pg_reach_now,
	.alone = pg_alone,
	.lost = pg_lost,
	.wait = pg_wait,
	.blob_open = pg_blob_open,
	.blob_close = pg_blob_close,
	.blob_bytes = pg_blob_bytes,
	.blob_read = pg_blob_read,
};

#else

static int fail_without_libpq(struct err *err)
{
	return err_set(err, ERR_UNSUPPORTED, "this dptrack was built without PostgreSQL (Debian: libpq-dev)");
}

int pg_open_writer(struct db **ret, const char *address, struct err *err)
{
	(void)ret;
	(void)address;
	return fail_without_libpq(err);
}

int pg_open_reader(struct db **ret, const char *address, struct err *err)
{
	return pg_open_writer(ret, address, err);
}

int pg_version(const char *address, int *ret, struct err *err)
{
	(void)address;
	(void)ret;
	return fail_without_libpq(err);
}

int pg_init(const char *address, struct err *err)
{
	(void)address;
	return fail_without_libpq(err);
}

int pg_upgrade(const char *address, int *ret_from, struct err *err)
{
	(void)address;
	(void)ret_from;
	return fail_without_libpq(err);
}

int pg_check_address(const char *address, bool *ret_password, struct err *err)
{
	(void)address;
	(void)ret_password;
	return fail_without_libpq(err);
}

#endif
