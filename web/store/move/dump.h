/* dump.h: a store as canonical text, independent of engine and place: one line per row and per file. Private to
 * web/store/move. */
#ifndef DPT_STORE_DUMP_H
#define DPT_STORE_DUMP_H

#include "tracker/base/buf.h"
#include "tracker/base/sha256.h"
#include "web/store/db/tables.h"

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
 * keep), NULL and NaN as \N, texts with \\ \t \n \r escaped, bytes in hex. For tables_walk. */
int dump_row(void *dump, const struct db_row *r, struct err *err);
int dump_file(struct dump *d, const char *path, uint64_t bytes, const char *sha256, struct err *err);
int dump_end(struct dump *d, char ret_sha256[65], struct err *err);

#endif
