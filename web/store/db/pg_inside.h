/* pg_inside.h: what the files that know PostgreSQL share about a connection. */
#ifndef DPT_STORE_PG_INSIDE_H
#define DPT_STORE_PG_INSIDE_H

#include <limits.h>

#include "web/store/db/engine.h"
#include "web/store/db/pgso.h"

#define PG_SENT_MAX 256

enum pg_prepared { PG_UNPREPARED, PG_SENT, PG_PREPARED };

struct pg_rows {
	struct db_rows rows; /* first: rows are cast back to this */
	const struct pgso *pq;
	enum pg_prepared prepared;
	bool asked;    /* for rows whose answer was not read yet */
	PGresult *res; /* NULL: none, or given back */
	int at;
	char number[24]; /* an integer that was asked for as text */
};

/* Something whose answer was not read yet. */
struct pg_sent {
	enum db_query q;
	bool prepare;
	bool synced; /* a sync went behind it, which has an answer too */
};

struct pg_db {
	struct db db; /* first: a connection is cast back to this */
	struct pgso pq;
	PGconn *c;
	char address[PATH_MAX];
	char name[300];         /* host and database, for messages */
	int answer_s;           /* the longest that an answer is waited for */
	bool writes, open, lost; /* open: in a transaction */
	bool reading;            /* which was begun to read */
	bool pooled; /* by pgbouncer: each transaction may have another connection, which knows no statement of ours */
	struct pg_sent sent[PG_SENT_MAX];
	size_t sent_count;
	int64_t last_id, changed; /* of the answer that was read last */
	struct err error;         /* the first failure that nobody was told yet, then the last one */
	bool untold;
	int64_t process, group; /* the row of this connection, and the number of its newest transaction */
	bool committing;        /* when it was lost */
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

/* pg_link.c: a connection to the address, in pipeline mode, in p, whose other members stay. pg_look notices, without
 * asking, that the other end has closed it (p->lost). */
int pg_connect(struct pg_db *p, struct err *err);
void pg_look(struct pg_db *p);
void pg_disconnect(struct pg_db *p);

/* pg_link.c: sends a query without reading its answer; sees to it that what was sent is on its way; reads all
 * outstanding answers: rows that were asked for go to their queries, as do the last one's. */
int pg_send(struct pg_db *p, enum db_query q, struct err *err, const char *fmt, va_list ap);
int pg_send_values(struct pg_db *p, enum db_query q, const struct db_value *v, int n, struct err *err);
int pg_send_plain(struct pg_db *p, enum db_query q, struct err *err, const char *fmt, ...);
void pg_push(struct pg_db *p);
int pg_settle(struct pg_db *p, struct err *err);

#endif
