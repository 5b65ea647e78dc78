/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h: the interface between db.c and an engine: SQLite in this process, PostgreSQL at an address. The engine's
 * own structs begin with these. Members do what db.h says of the functions with their names; comments name those
 * that may be NULL. */
#ifndef DPT_STORE_ENGINE_H
#define DPT_STORE_ENGINE_H

#include <stdatomic.h>

#include "web/store/db/db.h"

/* A query with the values of its format. */
struct db_call {
	enum db_query q;
	const char *fmt;
	va_list *values;
};

struct db_engine {
	void (*close)(struct db *d);
	int (*run)(struct db *d, const struct db_call *c, struct err *err);
	int (*run_values)(struct db *d, enum db_query q, const struct db_value *v, int n, struct err *err);
	int (*start)(struct db *d, struct db_rows **ret, const struct db_call *c, struct err *err);
	int (*next)(struct db *d, struct db_rows *q, struct err *err);
	void (*stop)(struct db_rows *q);
	int64_t (*i64)(struct db_rows *q, enum db_column column);
	double (*f64)(struct db_rows *q, enum db_column column);
	const char *(*str)(struct db_rows *q, enum db_column column);
	const void *(*bytes)(struct db_rows *q, enum db_column column, size_t *ret_n);
	bool (*null)(struct db_rows *q, enum db_column column);
	int64_t (*last_id)(struct db *d);
	int64_t (*changed)(struct db *d);
	bool (*in_transaction)(struct db *d);
	int (*failed)(struct db *d, struct err *err, const char *doing);
	int (*begin)(struct db *d, struct err *err);
	bool (*again)(struct db *d, int rc);				    /* NULL: never */
	void (*look)(struct db *d);					    /* NULL: it is never away */
	void (*rest)(struct db *d);					    /* NULL: nothing to free */
	int64_t (*wal_bytes)(struct db *d);				    /* NULL: the engine manages its log */
	void (*checkpoint)(struct db *d, bool everything);		    /* NULL: the same */
	struct db *(*alone)(struct db *d);				    /* NULL: the connection itself */
	bool (*lost)(struct db *d);					    /* NULL: never */
	void (*wait)(struct db *d, int fd, int ms);			    /* NULL: no notifications */
	int (*blob_open)(struct blob **io, struct db *d, const struct blob_column *of, int64_t id, struct err *err);
	void (*blob_close)(struct blob *b);
	size_t (*blob_bytes)(const struct blob *b);
	int (*blob_read)(struct blob *b, void *to, size_t from, size_t n, struct err *err);
};

struct db {
	const struct db_engine *engine;
	void *attached;		   /* db_attach */
	int64_t session;	   /* db_session */
	atomic_bool away, hurried; /* db_away, db_hurry */
	struct permitted *permitted; /* experiments that may be read; NULL: all */
};

struct db_rows {
	const struct db_engine *engine;
};

struct blob {
	const struct db_engine *engine;
};

/* A script that leads from the version before to this one. */
struct db_migration {
	int version;
	const char *text;
};

extern const struct db_migration db_sqlite_migrations[], db_pg_migrations[]; /* in order; version 0 ends them */
extern const int db_version;						      /* the newest */

/* ERR_CORRUPT or ERR_UNSUPPORTED if a store of that version, not 0, is newer than this program, or too old for it. */
int db_check_version(const char *shown, int64_t version, struct err *err);

int sqlite_open_writer(struct db **ret, const char *path, struct err *err);
int sqlite_open_reader(struct db **ret, const char *path, struct err *err);

/* For an address. */
int pg_open_writer(struct db **ret, const char *address, struct err *err);
int pg_open_reader(struct db **ret, const char *address, struct err *err);
int pg_version(const char *address, int *ret, struct err *err); /* 0: no tables */
int pg_init(const char *address, struct err *err);
int pg_upgrade(const char *address, int *ret_from, struct err *err);
int pg_check_address(const char *address, bool *ret_password, struct err *err);

#endif
