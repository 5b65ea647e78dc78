/* SPDX-License-Identifier: Apache-2.0 */
/* db.h: the interface to the database: connections, the statements of schema/sql/queries.sql by name, and rows with
 * columns by name. The engine is SQLite, or PostgreSQL where the place of the store is an address (postgresql://…);
 * only web/store/db knows which. One thread at a time uses a connection.
 * Binding formats: i int64_t; x int64_t (INT64_MIN becomes NULL); d double (NaN becomes NULL); t const char * (NULL
 * becomes NULL); b const void * and size_t. */
#ifndef DPT_STORE_DB_H
#define DPT_STORE_DB_H

#include "tracker/base/buf.h"
#include "web/store/base/grants.h"
#include "web/store/base/map.h"

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

#define DB_PAGE_BYTES 4096   /* unit of the query free_pages */
#define DB_ROWS_OF_BYTES 160 /* size of the database identity in changes_now */
/* Key of the environment under which the reason of a run's status is stored. */
#define STATUS_REASON "status_reason"

struct db;
struct db_rows; /* the rows of one query of a connection; each query runs once at a time */

bool db_is_address(const char *place); /* NULL is fine */

/* The place without a password; a file as it is. */
void db_shown(char *ret, size_t room, const char *place);

/* The read-write connection creates the file or migrates it to the newest version. Before a migration it copies a
 * non-empty file to FILE.before-N. At an address the tables must have this program's version. Readers opened later
 * do not check that, so they continue while a newer program upgrades the tables. */
int db_open_writer(struct db **ret, const char *place, struct err *err);
int db_open_reader(struct db **ret, const char *place, struct err *err);
int db_open_backup(struct db **ret, const char *path, struct err *err); /* an empty file, to be filled by copy_new */
int db_open_alone(struct db **ret, const char *path, struct err *err);	/* reads only; needs no disk space, and no
									 * other process may have the file open */
void db_close(struct db *d);						/* NULL is fine */

/* Addresses only: the version of the tables (0: none); creating them; upgrading them; checking an address, and
 * whether it has a password. */
int db_address_version(const char *address, int *ret, struct err *err);
int db_address_init(const char *address, struct err *err);
int db_address_upgrade(const char *address, int *ret_from, struct err *err);
int db_address_check(const char *address, bool *ret_password, struct err *err);
#define DB_VERSION 27	    /* of the tables in schema/sql/sqlite.sql and schema/sql/postgresql.sql */
#define DB_VERSION_FIRST 19 /* the oldest that can be migrated: that of 0.1.0 */

/* Runs a query without result rows. A query that has no text for the engine does nothing there, and has no rows. */
int db_run(struct db *d, enum db_query q, struct err *err, const char *fmt, ...);

/* A value of a row, by its format letter; b has n bytes. Capital letters: an array of such values, n bytes
 * (array_begin). Pointers are borrowed. */
struct db_value {
	char kind;
	int64_t i;
	double d;
	const void *at;
	size_t n;
};

/* The same with values in an array, at most DB_VALUES_MAX. */
#define DB_VALUES_MAX 24
int db_run_values(struct db *d, enum db_query q, const struct db_value *v, int n, struct err *err);

/* db_start binds; db_next steps: 1 a row, 0 the end (the statement is reset), negative: failed. At an address,
 * queries started before the first row is read share one round trip.
 *
 *	int rc = db_start(d, &q, DB_x, err, "i", id);
 *
 *	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
 *		list_push(a, &l.items, &l.count, (struct item){ db_text(a, q, COL_x_name) }); */
int db_start(struct db *d, struct db_rows **ret, enum db_query q, struct err *err, const char *fmt, ...);
int db_next(struct db *d, struct db_rows *q, struct err *err);
void db_stop(struct db_rows *q); /* ends a query before its end */

/* Reads the first column of the first row: 1, 0 if there is no row (*ret unchanged), negative: failed. */
int db_int(struct db *d, int64_t *ret, enum db_query q, struct err *err, const char *fmt, ...);

/* The current row. Borrowed values are valid until the next db_next or db_stop; NULL stays NULL there. */
int64_t db_i64(struct db_rows *q, enum db_column column); /* NULL: 0 */
int db_i32(struct db_rows *q, enum db_column column);
double db_f64(struct db_rows *q, enum db_column column);       /* NULL: NaN */
int64_t db_time(struct db_rows *q, enum db_column column);     /* NULL: INT64_MIN */
const char *db_str(struct db_rows *q, enum db_column column);  /* borrowed */
const void *db_blob(struct db_rows *q, enum db_column column); /* borrowed, db_bytes long */
size_t db_bytes(struct db_rows *q, enum db_column column);
bool db_null(struct db_rows *q, enum db_column column);
const char *db_text(struct arena *a, struct db_rows *q, enum db_column column); /* a copy in the arena; NULL: "" */

int64_t db_last_id(struct db *d);
int64_t db_changed(struct db *d); /* rows changed by the last statement */
bool db_in_transaction(struct db *d);
int db_failed(struct db *d, struct err *err, const char *doing); /* fills err from the last error of the connection */

/* Returns true if other processes write to the same store: cached rows are valid only under a lock of the current
 * transaction. */
bool db_shared(const struct db *d);

/* A connection that commits each statement at once while d is in a transaction. d itself where there are no other
 * writers, since nothing else waits then. Borrowed, for d's thread. */
struct db *db_alone(struct db *d);

/* Attaches what readers of d need besides rows (the archive cache); borrowed. NULL: nothing. */
void db_attach(struct db *d, void *what);
void *db_attached(const struct db *d);

bool db_lost(struct db *d); /* the connection broke */

/* Returns after a notification of another connection, when fd is readable, or after ms. */
void db_wait(struct db *d, int fd, int ms);

/* The writer's transactions. db_begin reconnects first if the connection broke, and waits for a database that is away:
 * 10 s from the first try, or until db_hurry; then ERR_BUSY. ERR_IO: the file or its log was deleted or replaced while
 * open, so further writes would be lost. */
int db_begin(struct db *d, struct err *err);

/* Commits if rc is 0, else undoes everything; call it after a failed db_begin, too. Returns rc or the code of the
 * commit. If the connection breaks during the commit, it reconnects and finds out whether that succeeded; ERR_BUSY if
 * the database stays away for 10 s, and this remains unknown. */
int db_end(struct db *d, int rc, struct err *err);

/* After db_end returned rc: true if the same transaction may succeed now, because another process won a conflict or the
 * connection broke. False after some tries in a row. */
bool db_again(struct db *d, int rc);

bool db_away(const struct db *d); /* the last try to reach the database failed; any thread */
void db_hurry(struct db *d);	  /* db_begin waits no longer; any thread */
void db_look(struct db *d);	  /* tries once to reach a database that is away, so that its return is noticed */

/* Changes when a new connection replaces a broken one: rows read before may be missing where a standby took over. */
int64_t db_session(const struct db *d);

/* Frees the page cache of a connection that is idle for a while. */
void db_rest(struct db *d);

/* Bytes committed to the log that no checkpoint has written to the file. */
int64_t db_wal_bytes(struct db *d);
void db_checkpoint(struct db *d, bool everything); /* everything: waits for readers and truncates the log */

/* The engine: its version, known flaws of it, and the memory of all connections. */
enum db_flaw { DB_FLAWLESS, DB_NO_THREADS, DB_ONE_CONNECTION };
const char *db_engine(enum db_flaw *ret); /* NULL is fine */
uint64_t db_memory_bytes(void);

/* --- blobs ---------------------------------------------------------------------------------------------------- */

/* Reads parts of the bytes in one column of one row, inside one snapshot and on the thread of its connection. On a
 * remote database all bytes of a row are read, and following rows too when rows are read in order. */
struct blob;

/* The column; rows: the query for ids ?1 to ?2 in order, with id and bytes. */
struct blob_column {
	const char *table, *column;
	enum db_query rows;
};

/* *io is NULL, or a blob of the same column, which moves to the row cheaply. After a failure blob_close is still
 * needed. */
int blob_open(struct blob **io, struct db *d, const struct blob_column *of, int64_t id, struct err *err);
void blob_close(struct blob *b); /* NULL is fine */

size_t blob_bytes(const struct blob *b);
int blob_read(struct blob *b, void *to, size_t from, size_t n, struct err *err);

/* --- copies of a file, page by page. The same connection may write the source between steps ------------------- */

struct db_copy;

int copy_new(struct db_copy **ret, struct db *to, struct db *from, struct err *err); /* to and from must outlive it */
void copy_free(struct db_copy *c);						     /* NULL is fine */

/* Copies some pages. A locked file is not a failure: the step does nothing; call it again. */
int copy_step(struct db_copy *c, int pages, bool *ret_done, struct err *err);

/* --- readers.c: the pool of read-only connections ------------------------------------------------------------- */

/* A reader is taken with an open read transaction, so all its reads see one snapshot. Give it back soon: meanwhile
 * the log file cannot shrink. */
struct readers;
struct store;

int readers_new(struct readers **ret, const char *path, int max, struct err *err);
/* One reader, for a file that no other process has open; needs no disk space. */
int readers_new_alone(struct readers **ret, const char *path, struct err *err);
void readers_free(struct readers *p); /* after all were given back; NULL is fine */

/* Waits while all are taken. ERR_DENIED: s is restricted (store_restrict). */
int readers_take(struct store *s, struct db **ret, struct err *err);

/* For reads that honour restrictions. The reader of a restricted store knows which experiments may be read. */
int readers_take_permitted(struct store *s, struct db **ret, struct err *err);

/* The same, with the number of a run; on failure no reader is taken. ERR_NOENT, ERR_GONE: no such run. */
int readers_take_run(struct store *s, struct db **ret, const char *uuid, int64_t *ret_id, struct err *err);
void readers_give(struct store *s, struct db *d);

/* Reports why a run was not found: ERR_GONE or ERR_NOENT. */
int readers_missing(struct db *d, const char *uuid, struct err *err);

/* --- permitted.c: the experiments that a reader's caller may see ---------------------------------------------- */

/* Sets of experiments by the texts of grants. A set is valid as long as the table of experiments is unchanged; it is
 * read in the snapshot of the reader. */
struct permitted_cache;
struct permitted_cache *permitted_cache_new(void);
void permitted_cache_free(struct permitted_cache *c); /* NULL is fine */

/* For readers.c: gives the reader its set, and takes it away. */
int permitted_take(struct store *s, struct db *d, struct err *err);
void permitted_give(struct store *s, struct db *d);

/* Whether an experiment may be read; of a whole store all may. permitted_level judges any name as an experiment's. */
bool permitted(const struct db *d, int64_t experiment);
enum grant_level permitted_level(const struct db *d, const char *name);
const char *permitted_ids(const struct db *d); /* an array for queries, NULL: all. Valid while d is taken */

/* --- tables.c: whole tables ----------------------------------------------------------------------------------- */

/* Reads every row of a store, table by table in a fixed order, and inserts them into the tables of another engine.
 * The tables are those of schema/sql/postgresql.sql (schema/gen/tables.awk), without what belongs to the place:
 * rows of meta, artifact and object about it, and messages between processes of a team. */
struct db_table {
	const char *name, *kinds; /* format letters of the columns */
	enum db_query all, more, put, next;
};

/* Borrowed until `row` returns. */
struct db_row {
	const struct db_table *table;
	const struct db_value *values;
	int n;
};

/* Passes every row to `row`: tables in a fixed order, rows by key; a negative result ends it. Call it inside a
 * transaction, once per transaction. */
int tables_walk(struct db *d, int (*row)(void *arg, const struct db_row *r, struct err *err), void *arg,
		struct err *err);

const struct db_table *tables_named(const char *name); /* in the order that tables are visited, addresses ascend */

int tables_put(struct db *d, const struct db_row *r, struct err *err);

/* Call after the last row: sequences continue after the ids in use. */
int tables_put_end(struct db *d, struct err *err);

/* ---- batch.c ----
 * Many rows for one query. SQLite writes each at once. At an address they are sent together, as one array per column,
 * which the query reads with unnest. */

struct db_batch {
	struct db *d;
	enum db_query q;
	const char *fmt; /* format of a row, letters as in db_run */
	struct buf columns[DB_VALUES_MAX];
	size_t rows; /* not sent yet */
};

void db_batch_init(struct db_batch *b, struct db *d, enum db_query q, const char *fmt);
int db_batch_add(struct db_batch *b, struct err *err, ...); /* a row, values as in db_run */
int db_batch_run(struct db_batch *b, struct err *err);	    /* sends the rows */
void db_batch_drop(struct db_batch *b);			    /* frees those that were not sent */

/* A set of values bound as one text (t): {"a","b"} or {1,2}, PostgreSQL's syntax of arrays, of which SQLite's queries
 * make JSON. For queries that look up many rows at once; the text must live until their last row. */
void array_begin(struct buf *b); /* call buf_done afterwards */
void array_text(struct buf *b, const char *text);
void array_int(struct buf *b, int64_t v);
const char *array_end(struct buf *b); /* borrowed from b */

/* begin, n numbers, end. */
const char *array_of(struct buf *b, const int64_t *v, size_t n);

#endif
