/* SPDX-License-Identifier: Apache-2.0 */
/* move_inside.h: shared by the files of this room: the two ends of a move, its files, and a store as text. */
#ifndef DPT_STORE_MOVE_INSIDE_H
#define DPT_STORE_MOVE_INSIDE_H

#include <limits.h>

#include "tracker/base/sha256.h"
#include "tracker/object/object.h"
#include "web/store/db/db.h"
#include "web/store/move/move.h"

struct store;

struct move_end {
	char db[PATH_MAX], shown[PATH_MAX]; /* shown: without a password */
	char files[PATH_MAX];		    /* a folder, or s3://… */
	char id[40];			    /* id of the store */
	struct store *lock;		    /* lock on a file; NULL: a database server */
	struct db *d;			    /* for the source: in one transaction */
	struct db *guard;		    /* for a target on a database server: keeps others out */
	struct object_client *objects;	    /* NULL: files is a folder */
	struct archives *archives;	    /* archived points of the source */
	const char *prefix;		    /* prefix of objects in files */
	bool begun;			    /* the target was begun by an earlier try with the same source */
};

int move_open_from(struct move_end *e, const struct move_place *p, struct err *err);
int move_open_to(struct move_end *e, const struct move_place *p, const struct move_end *from, struct err *err);
void move_close(struct move_end *e); /* all zeros is fine */

/* Passes every row, and archived chunks as rows, in order. */
int move_walk(struct move_end *from, int (*row)(void *arg, const struct db_row *r, struct err *err), void *arg,
	      struct err *err);

/* The key of a file's or archive's object. */
void move_key_of(const struct move_end *e, const char *object, char ret[OBJECT_KEY_MAX + 1]);

/* One file of a store. */
struct move_file {
	char *path;
	uint64_t bytes;
	int64_t time_ns;
	char sha256[65]; /* "": unknown */
	char object[33];
};

struct move_files {
	struct move_file *list; /* by path */
	size_t n, cap;
};

int move_files_list(struct move_files *ret, struct move_end *e, struct err *err);
void move_files_done(struct move_files *f);

/* Copies every file that the target lacks; fills the digests of the list. */
int move_files_copy(struct move_files *f, struct move_end *from, struct move_end *to, struct move_result *ret,
		    struct err *err);

/* Reads every file and fills its digest. */
int move_files_read(struct move_files *f, struct move_end *e, struct err *err);

/* A store as canonical text, independent of engine and place: one line per row and per file. Private to
 * web/store/move. */
struct dump {
	int (*sink)(void *arg, const char *text, size_t n, struct err *err); /* NULL: only compute the digest */
	void *arg;
	struct buf text;
	struct sha256 sha;
	const struct db_table *last;
};

void dump_init(struct dump *d);
void dump_done(struct dump *d);

/* Columns are separated by tabs: integers and doubles in decimal (%.17g; zeros without a sign, which SQLite does not
 * keep), NULL and NaN as \N, strings with \\ \t \n \r escaped, bytes in hex. For tables_walk. */
int dump_row(void *dump, const struct db_row *r, struct err *err);
int dump_file(struct dump *d, const char *path, uint64_t bytes, const char *sha256, struct err *err);
int dump_end(struct dump *d, char ret_sha256[65], struct err *err);

#endif
