/* db.h: the face of the store's engine: connections, the statements of schema/sql/queries.sql by name, rows whose
 * columns are read by name. SQLite stands behind it, or PostgreSQL where a store's place is an address
 * (postgresql://…); only web/store/db knows which.
 * A connection is used by one thread at a time. Formats of binding: i int64_t, x int64_t (INT64_MIN becomes NULL),
 * d double (NaN becomes NULL), t const char * (NULL becomes NULL), b const void * and size_t. */
#ifndef DPT_STORE_DB_H
#define DPT_STORE_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/arena.h"
#include "tracker/base/err.h"

enum db_query {
#define SQL_QUERY(name, text) DB_##name,
#include "web/store/db/queries.def"
#undef SQL_QUERY
	DB_QUERY_COUNT
};

/* COL_<query>_<column>; a query `A as B` has B's. */
enum db_column {
#define SQL_COLUMN(query, column, number) COL_##query##_##column = number,
#include "web/store/db/columns.def"
#undef SQL_COLUMN
};

#define DB_PAGE_BYTES 4096 /* what the query free_pages counts */
#define DB_ROWS_OF_BYTES 160 /* room for what changes_now says of whose rows these are */

struct db;
struct db_rows; /* of one query of a connection, which can be under way once at a time */

bool db_is_address(const char *place); /* NULL is fine */

/* The place without what a password may stand in; a file as it is. */
void db_shown(char *ret, size_t room, const char *place);

/* The read-write connection makes the file and brings it to the newest version (one copy FILE.before-N beside it
 * first, unless it was empty). At an address the tables must be there, in this program's version; connections for
 * reading that are made later do not ask again: what is open goes on while a newer program upgrades the tables. */
int db_open_writer(struct db **ret, const char *place, struct err *err);
int db_open_reader(struct db **ret, const char *place, struct err *err);
int db_open_backup(struct db **ret, const char *path, struct err *err); /* an empty file, to be filled by a copy */
int db_open_alone(struct db **ret, const char *path, struct err *err);  /* reads, needs no room and all others gone */
void db_close(struct db *d);                                             /* NULL is fine */

/* Of an address alone. The version of its tables, 0 when there are none; making them; whether it can be understood, and
 * holds a password. */
int db_address_version(const char *address, int *ret, struct err *err);
int db_address_init(const char *address, struct err *err);
int db_address_upgrade(const char *address, int *ret_from, struct err *err);
int db_address_check(const char *address, bool *ret_password, struct err *err);
#define DB_VERSION 18 /* what db_address_init makes */

/* Runs a query that gives no rows. */
int db_run(struct db *d, enum db_query q, struct err *err, const char *fmt, ...);

/* One value of a row, by the letter that a format has for it; b of n bytes; large letters: an array of such values, of
 * n bytes (batch.h). What a pointer names is borrowed. */
struct db_value {
	char kind;
	int64_t i;
	double d;
	const void *at;
	size_t n;
};

/* The same with values that are counted while it runs, at most DB_VALUES_MAX. */
#define DB_VALUES_MAX 24
int db_run_values(struct db *d, enum db_query q, const struct db_value *v, int n, struct err *err);

/* Binds; db_next then steps: 1 a row, 0 the end (the statement is reset), negative failed. At an address queries that
 * were started before the first of their rows is asked for take one round trip together. */
int db_start(struct db *d, struct db_rows **ret, enum db_query q, struct err *err, const char *fmt, ...);
int db_next(struct db *d, struct db_rows *q, struct err *err);
void db_stop(struct db_rows *q); /* before the end was reached */
int db_no_memory(struct db_rows *q, struct err *err); /* db_stop: its rows could not be kept. ERR_NOMEM */

/* The first column of the first row; 1, 0 when there is no row (*ret untouched), negative failed. */
int db_int(struct db *d, int64_t *ret, enum db_query q, struct err *err, const char *fmt, ...);

/* The row that db_next came to. What is borrowed is good until the next db_next or db_stop; NULL gives NULL there. */
int64_t db_i64(struct db_rows *q, enum db_column column); /* NULL gives 0 */
int db_i32(struct db_rows *q, enum db_column column);
double db_f64(struct db_rows *q, enum db_column column);       /* NULL gives NaN */
int64_t db_time(struct db_rows *q, enum db_column column);     /* NULL gives INT64_MIN */
const char *db_str(struct db_rows *q, enum db_column column);  /* borrowed */
const void *db_blob(struct db_rows *q, enum db_column column); /* borrowed, of db_bytes */
size_t db_bytes(struct db_rows *q, enum db_column column);
bool db_null(struct db_rows *q, enum db_column column);
const char *db_text(struct arena *a, struct db_rows *q, enum db_column column); /* a copy in the arena; NULL gives "" */

int64_t db_last_id(struct db *d);
int64_t db_changed(struct db *d); /* rows, by the statement that ran last */
bool db_in_transaction(struct db *d);
int db_failed(struct db *d, struct err *err, const char *doing); /* fills err from the connection's last error */

/* Other processes write to the same store: what was read before is good only under a lock of this transaction. */
bool db_shared(const struct db *d);

/* A connection whose statements are committed one by one while d is in a transaction; d itself where nobody else
 * writes, for then nobody else waits. Borrowed, of d's thread. */
struct db *db_alone(struct db *d);

/* What who reads through d knows besides its rows (archives of points); borrowed. NULL: nothing. */
void db_attach(struct db *d, void *what);
void *db_attached(const struct db *d);

/* The connection broke: what was under way in it is undone, unless it broke while committing. db_recover makes a new
 * one and learns for certain whether that commit was done; it fails (ERR_BUSY) while the database cannot be reached. */
bool db_lost(struct db *d);
int db_recover(struct db *d, bool *ret_committed, struct err *err);

/* Returns when another connection told something, when fd can be read, or after ms. */
void db_wait(struct db *d, int fd, int ms);

/* Of the writer. ERR_IO when somebody deleted the file or its log, or put another file in its place, while they are
 * open: what is written from then on would be lost. */
int db_still_there(struct db *d, struct err *err);

/* Nobody needs it for a while: what it holds of the database in memory is freed. */
void db_rest(struct db *d);

/* What the writer committed to its log and no checkpoint brought into the file yet. */
int64_t db_wal_bytes(struct db *d);
void db_checkpoint(struct db *d, bool everything); /* everything: waits for readers and empties the log */

/* The engine: its version, what is known against it, and the memory that all connections take. */
enum db_flaw { DB_FLAWLESS, DB_NO_THREADS, DB_ONE_CONNECTION };
const char *db_engine(enum db_flaw *ret); /* NULL is fine */
uint64_t db_memory_bytes(void);

#endif
