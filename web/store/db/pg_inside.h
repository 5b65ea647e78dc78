/* SPDX-License-Identifier: Apache-2.0 */
/* pg_inside.h: libpq and the state of a connection, shared by the files that use PostgreSQL. */
#ifndef DPT_STORE_PG_INSIDE_H
#define DPT_STORE_PG_INSIDE_H

#include <libpq-fe.h>
#include <limits.h>

#include "web/store/db/engine.h"

/* libpq, loaded only when a store's place is an address. */
#define PGSO_FUNCTIONS(X)                                                                                            \
	X(backendPID) X(clear) X(cmdStatus) X(cmdTuples) X(connectdbParams) X(conninfoFree) X(conninfoParse)         \
	X(consumeInput) X(db) X(enterPipelineMode) X(errorMessage) X(exec) X(exitPipelineMode) X(finish) X(freemem)  \
	X(ftype) X(getResult) X(getisnull) X(getlength) X(getvalue) X(host) X(isBusy) X(notifies) X(ntuples)         \
	X(pipelineSync) X(resultErrorField) X(resultStatus) X(sendPrepare) X(sendQueryPrepared)                      \
	X(setNoticeProcessor) X(socket) X(status)

struct pgso {
#define PGSO_MEMBER(name) __typeof__(&PQ##name) name;
	PGSO_FUNCTIONS(PGSO_MEMBER)
#undef PGSO_MEMBER
};

/* pg_link.c: 0 or ERR_UNSUPPORTED with the loader's reason. The library stays loaded for the life of the process. */
int pgso_load(struct pgso *ret, struct err *err);

#define PG_SENT_MAX 256

enum pg_prepared { PG_UNPREPARED, PG_SENT, PG_PREPARED };

struct pg_rows {
	struct db_rows rows; /* first member: rows are cast back to this */
	const struct pgso *pq;
	enum pg_prepared prepared;
	bool asked;    /* db_start has sent it, and its result is unread */
	PGresult *res; /* NULL: none, or freed */
	int at;
	char number[24]; /* an integer read as text */
};

/* A query whose answer is not read yet. */
struct pg_sent {
	enum db_query q;
	bool prepare;
	bool synced; /* followed by a sync, which has an answer too */
};

struct pg_db {
	struct db db; /* first member: a connection is cast back to this */
	struct pgso pq;
	PGconn *c;
	char address[PATH_MAX];
	char name[300];		 /* host and database, for messages */
	int answer_s;		 /* longest wait for an answer */
	bool writes, open, lost; /* open: in a transaction */
	bool reading;		 /* a read transaction */
	bool pooled;		 /* by pgbouncer: each transaction may use another connection, which lacks our prepared
				  * statements */
	struct pg_sent sent[PG_SENT_MAX];
	size_t sent_count;
	int64_t last_id, changed; /* from the last result read */
	struct err error;	  /* the first failure that is not reported yet, then the last one */
	bool untold;
	/* of a writer */
	int64_t process, group;	    /* row of this connection in the table process; number of its newest transaction */
	bool committing, committed; /* it was lost during a commit; that commit succeeded */
	double began_s;		    /* first try of the transaction; 0: none */
	double away_since_s;	    /* 0: the database is reachable */
	int tries;
	struct pg_db *alone;
	struct pg_rows rows[DB_QUERY_COUNT];
};

static inline struct pg_db *pg_db(struct db *d)
{
	return (struct pg_db *)(void *)d;
}

static inline struct pg_rows *pg_rows(struct db_rows *q)
{
	return (struct pg_rows *)(void *)q;
}

extern const struct db_engine pg_engine;

/* blob_pg.c */
int pg_blob_open(struct blob **io, struct db *d, const struct blob_column *of, int64_t id, struct err *err);
void pg_blob_close(struct blob *b);
size_t pg_blob_bytes(const struct blob *b);
int pg_blob_read(struct blob *b, void *to, size_t from, size_t n, struct err *err);

/* pg_link.c: connects to p->address in pipeline mode; other members of p are unchanged. pg_look detects, without a
 * query, that the server closed the connection (sets p->lost). */
int pg_connect(struct pg_db *p, struct err *err);
void pg_look(struct pg_db *p);
void pg_disconnect(struct pg_db *p);

/* pg_writer.c, for writers: pg_join adds the row of a new connection. pg_reach_in_time connects again if that is
 * needed, and waits as db_begin does. pg_await_outcome: after a commit that broke the connection, its result. */
int pg_join(struct pg_db *p, struct err *err);
int pg_reach_in_time(struct pg_db *p, struct err *err);
int pg_await_outcome(struct pg_db *p, struct err *err);
bool pg_again(struct db *d, int rc); /* db_again */
void pg_reach_now(struct db *d);     /* db_look */

/* pg_link.c: pg_send sends a query without reading its answer. pg_push flushes what was sent. pg_settle reads all
 * pending answers and stores the rows of started queries and of the last query. */
int pg_send(struct pg_db *p, const struct db_call *c, struct err *err);
int pg_send_values(struct pg_db *p, enum db_query q, const struct db_value *v, int n, struct err *err);
int pg_send_plain(struct pg_db *p, enum db_query q, struct err *err, const char *fmt, ...);
void pg_push(struct pg_db *p);
int pg_settle(struct pg_db *p, struct err *err);

#endif
