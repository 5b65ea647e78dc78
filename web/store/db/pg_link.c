/* SPDX-License-Identifier: Apache-2.0 */
/* pg_link.c: libpq, loaded on demand, and the connection: connecting, sending queries without waiting, reading
 * answers together. Independent of transactions. */

#include "config.h"

#ifdef HAVE_LIBPQ

#include "web/store/db/pg_inside.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/library.h"

static const char *const query_text[] = {
#define SQL_QUERY(name, text) [DB_##name] = text,
#include "web/store/db/queries_pg.def"
#undef SQL_QUERY
};

/* OIDs of PostgreSQL types, which never change. */
enum { TYPE_BYTEA = 17, TYPE_INT8 = 20, TYPE_TEXT = 25, TYPE_FLOAT8 = 701 };
enum { TYPE_BYTEAS = 1001, TYPE_TEXTS = 1009, TYPE_INT8S = 1016, TYPE_FLOAT8S = 1022 }; /* arrays of them */

int pgso_load(struct pgso *ret, struct err *err)
{
#define PGSO_FUNCTION(name) { "PQ" #name, &ret->name },
	const struct library_function wanted[] = { PGSO_FUNCTIONS(PGSO_FUNCTION) };
#undef PGSO_FUNCTION
	const struct library library = { "libpq.so.5", "PostgreSQL needs libpq, version 14 or newer (Debian: libpq5)" };

	return library_load(&library, wanted, sizeof(wanted) / sizeof(wanted[0]), err);
}

/* --- errors ------------------------------------------------------------------------------------------------- */

static const struct {
	char state[6]; /* a prefix */
	int code;
} codes[] = {
	{ "53100", ERR_NOSPC },	  { "53", ERR_BUSY },	 /* disk full; other resources */
	{ "40", ERR_BUSY },	  { "23", ERR_BUSY },	 /* a deadlock; a concurrent insert of the same row */
	{ "55", ERR_BUSY },	  { "57", ERR_BUSY },	 /* not available now; cancelled or shutting down */
	{ "25", ERR_BUSY },	  { "22012", ERR_BUSY }, /* timeout or standby; the row of this process is gone */
	{ "08", ERR_BUSY },	  { "54", ERR_LIMIT },	  { "XX001", ERR_DAMAGED },
	{ "XX002", ERR_DAMAGED }, { "22021", ERR_USAGE },
};

static int pg_error_code(const char *state)
{
	size_t i;

	for (i = 0; state && i < sizeof(codes) / sizeof(codes[0]); i++)
		if (!strncmp(state, codes[i].state, strlen(codes[i].state)))
			return codes[i].code;
	return ERR_IO;
}

/* Copies the first line of a libpq message. */
static void copy_one_line(char *to, size_t room, const char *text)
{
	snprintf(to, room, "%.*s", (int)strcspn(text, "\n"), text);
}

static void mark_link_lost(struct pg_db *p)
{
	char why[300];

	if (p->lost)
		return;
	p->lost = true;
	p->open = false;
	p->sent_count = 0;
	copy_one_line(why, sizeof(why), p->c ? p->pq.errorMessage(p->c) : "");
	err_set(&p->error, ERR_BUSY, "lost the connection to the database %s%s%s: reconnecting soon", p->name,
		*why ? ": " : "", why);
	p->untold = true;
}

static void note_pg_error(struct pg_db *p, const PGresult *r)
{
	const char *state = p->pq.resultErrorField(r, PG_DIAG_SQLSTATE);
	const char *text = p->pq.resultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);

	if (p->untold)
		return;
	err_set(&p->error, pg_error_code(state), "%s: %s (%s)", p->name, text ? text : "no answer",
		state ? state : "-");
	p->untold = true;
}

static int fill_pg_error(struct pg_db *p, struct err *err)
{
	if (err)
		*err = p->error;
	p->untold = p->lost; /* stays so until a reconnect */
	return p->error.code;
}

/* --- a connection ------------------------------------------------------------------------------------------- */

static void ignore_pg_notice(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

static bool is_local_host(const char *hosts)
{
	return !hosts || !*hosts || *hosts == '/' || *hosts == '@' || !strncmp(hosts, "localhost", 9) ||
	       !strncmp(hosts, "127.", 4) || !strcmp(hosts, "::1");
}

static int check_pg_address(const struct pgso *pq, const char *address, bool *ret_local, bool *ret_password,
			    struct err *err)
{
	char *why = NULL;
	PQconninfoOption *all = pq->conninfoParse(address, &why), *o;

	/* libpq's own text may have the password. */
	pq->freemem(why);
	if (!all)
		return err_set(err, ERR_USAGE,
			       "the address of the database is malformed: expected postgresql://USER@HOST/NAME");
	for (o = all; o->keyword; o++) {
		if (!strcmp(o->keyword, "host") && ret_local)
			*ret_local = is_local_host(o->val);
		if ((!strcmp(o->keyword, "password") || !strcmp(o->keyword, "sslpassword")) && ret_password)
			*ret_password = *ret_password || (o->val && *o->val);
	}
	pq->conninfoFree(all);
	return 0;
}

int pg_check_address(const char *address, bool *ret_password, struct err *err)
{
	struct pgso pq;
	int rc = pgso_load(&pq, err);

	*ret_password = false;
	return rc ? rc : check_pg_address(&pq, address, NULL, ret_password, err);
}

/* A pooler does not identify itself, but then the backend PID of the connection is not that of the answering
 * process. */
static int notice_pg_pooler(struct pg_db *p, struct err *err)
{
	int rc;

	p->pooled = true; /* until it is known */
	rc = pg_send_plain(p, DB_pg_backend, err, "");
	if (!rc)
		rc = pg_settle(p, err);
	p->pooled = rc || p->last_id != p->pq.backendPID(p->c);
	if (rc)
		pg_disconnect(p);
	return rc;
}

int pg_connect(struct pg_db *p, struct err *err)
{
	/* Parameters after dbname are overridden by the address. With several hosts, a standby may lag, so it is
	 * never used. */
	const char *words[] = { "fallback_application_name", "connect_timeout", "keepalives_idle",
				"keepalives_interval", "keepalives_count", "tcp_user_timeout", "target_session_attrs",
				"sslmode", "dbname", "client_encoding", NULL };
	const char *values[] = { "dptrack", "3", "5", "2", "3", "10000", p->writes ? "read-write" : "primary", "prefer",
				 p->address, "UTF8", NULL };
	bool local = true;
	char why[300];
	int rc = check_pg_address(&p->pq, p->address, &local, NULL, err);

	if (rc)
		return rc;
	values[7] = local ? "prefer" : "verify-full";
	p->c = p->pq.connectdbParams(words, values, 1);
	if (!p->c)
		return err_nomem(err, NULL);
	if (p->pq.status(p->c) != CONNECTION_OK) {
		copy_one_line(why, sizeof(why), p->pq.errorMessage(p->c));
		pg_disconnect(p);
		return err_set(err, ERR_BUSY, "the database cannot be reached: %s", why);
	}
	snprintf(p->name, sizeof(p->name), "%.200s/%.80s", p->pq.host(p->c), p->pq.db(p->c));
	p->pq.setNoticeProcessor(p->c, ignore_pg_notice, NULL);
	if (!p->pq.enterPipelineMode(p->c))
		return err_set(err, ERR_IO, "%s: libpq has no pipelines", p->name);
	p->lost = p->open = p->untold = false;
	p->sent_count = 0;
	return notice_pg_pooler(p, err);
}

void pg_disconnect(struct pg_db *p)
{
	size_t i;

	for (i = 0; i < DB_QUERY_COUNT; i++) {
		p->pq.clear(p->rows[i].res);
		p->rows[i].res = NULL;
		p->rows[i].prepared = PG_UNPREPARED;
	}
	if (p->c)
		p->pq.finish(p->c);
	p->c = NULL;
	p->lost = true;
}

/* --- queries ------------------------------------------------------------------------------------------------ */

struct values {
	int count;
	Oid types[DB_VALUES_MAX];
	const char *at[DB_VALUES_MAX];
	int lengths[DB_VALUES_MAX], formats[DB_VALUES_MAX];
	uint64_t numbers[DB_VALUES_MAX];
};

static void put_pg_number(struct values *v, uint64_t bits, Oid type, bool null)
{
	v->numbers[v->count] = htobe64(bits);
	v->types[v->count] = type;
	v->at[v->count] = null ? NULL : (const char *)&v->numbers[v->count];
	v->lengths[v->count] = 8;
	v->formats[v->count] = 1;
}

static void put_pg_bytes(struct values *v, const void *bytes, size_t n, Oid type)
{
	v->types[v->count] = type;
	v->at[v->count] = bytes;
	v->lengths[v->count] = (int)n;
	v->formats[v->count] = type != TYPE_TEXT;
}

/* Of a batch column. */
static Oid pg_array_type(char kind)
{
	switch (kind) {
	case 'I':
		return TYPE_INT8S;
	case 'D':
		return TYPE_FLOAT8S;
	case 'T':
		return TYPE_TEXTS;
	case 'B':
		return TYPE_BYTEAS;
	default:
		return 0;
	}
}

/* Borrowed until the query is sent. */
static void put_pg_value(struct values *v, const struct db_value *from)
{
	uint64_t bits;

	if (from->kind == 'i' || from->kind == 'x') {
		put_pg_number(v, (uint64_t)from->i, TYPE_INT8, from->kind == 'x' && from->i == INT64_MIN);
	} else if (from->kind == 'd') {
		memcpy(&bits, &from->d, sizeof(bits));
		put_pg_number(v, bits, TYPE_FLOAT8, isnan(from->d));
	} else if (from->kind == 't') {
		put_pg_bytes(v, from->at, 0, TYPE_TEXT);
	} else if (pg_array_type(from->kind)) {
		put_pg_bytes(v, from->at, from->n, pg_array_type(from->kind));
	} else {
		put_pg_bytes(v, from->at ? from->at : "", from->n, TYPE_BYTEA);
	}
	v->count++;
}

static void read_pg_values(struct values *v, const char *fmt, va_list ap)
{
	for (v->count = 0; *fmt && v->count < DB_VALUES_MAX; fmt++) {
		struct db_value one = { .kind = *fmt };

		if (*fmt == 'i' || *fmt == 'x')
			one.i = va_arg(ap, int64_t);
		else if (*fmt == 'd')
			one.d = va_arg(ap, double);
		else
			one.at = va_arg(ap, const void *);
		if (*fmt == 'b')
			one.n = va_arg(ap, size_t);
		put_pg_value(v, &one);
	}
}

static void note_sent_query(struct pg_db *p, enum db_query q, bool prepare)
{
	p->sent[p->sent_count++] = (struct pg_sent){ q, prepare, false };
}

/* Sends a query, and prepares it first if this connection has not done so. */
static int send_pg_query(struct pg_db *p, enum db_query q, const struct values *v, struct err *err)
{
	struct pg_rows *r = &p->rows[q];
	char name[16] = "";

	r->rows.engine = p->db.engine;
	r->pq = &p->pq;
	p->pq.clear(r->res);
	r->res = NULL;
	if (!p->lost && p->sent_count + 2 > PG_SENT_MAX)
		pg_settle(p, NULL);
	if (p->lost || p->untold)
		return fill_pg_error(p, err);
	if (p->pooled && q == DB_live_listen)
		return 0; /* notifications would not reach this connection; the reader polls each second anyway */
	if (!p->pooled)
		snprintf(name, sizeof(name), "q%d", (int)q);
	if (p->pooled || r->prepared == PG_UNPREPARED) {
		if (!p->pq.sendPrepare(p->c, name, query_text[q], v->count, v->types))
			return mark_link_lost(p), fill_pg_error(p, err);
		r->prepared = PG_SENT;
		note_sent_query(p, q, true);
	}
	if (!p->pq.sendQueryPrepared(p->c, name, v->count, v->at, v->lengths, v->formats, 1))
		return mark_link_lost(p), fill_pg_error(p, err);
	note_sent_query(p, q, false);
	return 0;
}

int pg_send(struct pg_db *p, const struct db_call *c, struct err *err)
{
	struct values v;

	read_pg_values(&v, c->fmt, *c->values);
	return send_pg_query(p, c->q, &v, err);
}

int pg_send_values(struct pg_db *p, enum db_query q, const struct db_value *from, int n, struct err *err)
{
	struct values v = { .count = 0 };

	for (int i = 0; i < n && i < DB_VALUES_MAX; i++)
		put_pg_value(&v, &from[i]);
	return send_pg_query(p, q, &v, err);
}

int pg_send_plain(struct pg_db *p, enum db_query q, struct err *err, const char *fmt, ...)
{
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = pg_send(p, &(struct db_call){ q, fmt, &ap }, err);
	va_end(ap);
	return rc;
}

/* --- answers ------------------------------------------------------------------------------------------------ */

/* libpq itself would wait forever for a stopped server. */
static PGresult *get_pg_result(struct pg_db *p)
{
	double until_s = clock_mono_s() + p->answer_s;

	while (!p->lost && p->pq.isBusy(p->c)) {
		struct pollfd fd = { .fd = p->pq.socket(p->c), .events = POLLIN };
		int left_ms = (int)((until_s - clock_mono_s()) * 1000);

		if (left_ms <= 0 || (poll(&fd, 1, left_ms) < 0 && errno != EINTR) || !p->pq.consumeInput(p->c))
			mark_link_lost(p);
	}
	return p->lost ? NULL : p->pq.getResult(p->c);
}

static void keep_pg_rows(struct pg_db *p, const struct pg_sent *s, PGresult *r, bool last)
{
	struct pg_rows *rows = &p->rows[s->q];
	const char *tuples = p->pq.cmdTuples(r);

	p->changed = tuples && *tuples ? strtoll(tuples, NULL, 10) : 0;
	if (p->pq.ntuples(r) && p->pq.getlength(r, 0, 0) == 8) {
		uint64_t bits;

		memcpy(&bits, p->pq.getvalue(r, 0, 0), sizeof(bits));
		p->last_id = (int64_t)be64toh(bits);
	}
	if (!last && !rows->asked) {
		p->pq.clear(r);
		return;
	}
	p->pq.clear(rows->res);
	rows->res = r;
	rows->at = -1;
}

static void read_pg_result(struct pg_db *p, const struct pg_sent *s, bool last)
{
	PGresult *r = get_pg_result(p), *more;
	ExecStatusType status = p->pq.resultStatus(r);

	if (s->prepare)
		p->rows[s->q].prepared = status == PGRES_COMMAND_OK ? PG_PREPARED : PG_UNPREPARED;
	if (!r)
		return;
	if (!s->prepare && (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)) {
		keep_pg_rows(p, s, r, last);
		r = NULL;
	} else if (status != PGRES_COMMAND_OK && status != PGRES_PIPELINE_ABORTED) {
		if (p->pq.status(p->c) == CONNECTION_BAD)
			mark_link_lost(p);
		else
			note_pg_error(p, r);
	}
	p->pq.clear(r);
	while ((more = get_pg_result(p)))
		p->pq.clear(more);
}

void pg_push(struct pg_db *p)
{
	struct pg_sent *last = p->sent_count ? &p->sent[p->sent_count - 1] : NULL;

	if (p->lost || !last || last->synced)
		return;
	last->synced = p->pq.pipelineSync(p->c);
	if (!last->synced)
		mark_link_lost(p);
}

int pg_settle(struct pg_db *p, struct err *err)
{
	size_t i, n = p->sent_count;

	pg_push(p);
	for (i = 0; i < n && !p->lost; i++) {
		read_pg_result(p, &p->sent[i], i + 1 == n);
		if (p->sent[i].synced && !p->lost)
			p->pq.clear(get_pg_result(p)); /* of the sync */
	}
	for (i = 0; i < n; i++)
		p->rows[p->sent[i].q].asked = false;
	p->sent_count = 0;
	return p->lost || p->untold ? err ? fill_pg_error(p, err) : p->error.code : 0;
}

void pg_look(struct pg_db *p)
{
	struct pollfd fd = { .fd = p->lost ? -1 : p->pq.socket(p->c), .events = POLLIN };

	/* Reads what the server sent before it closed. */
	while (!p->lost && poll(&fd, 1, 0) > 0)
		if (!p->pq.consumeInput(p->c))
			mark_link_lost(p);
}

#endif
