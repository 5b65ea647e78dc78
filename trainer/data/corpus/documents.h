/* SPDX-License-Identifier: Apache-2.0 */
/* documents.h: iterates over the documents of one file of a corpus in bounded memory. A plain text is one document;
 * so is a JSON line, an element of a JSON array, and a row of a table. */
#ifndef DPT_DATA_DOCUMENTS_H
#define DPT_DATA_DOCUMENTS_H

#include "trainer/data/data_account.h"
#include "trainer/data/store/data_objects.h"

#define DOCUMENTS_FIELD "text"
#define DOCUMENTS_LINE_MAX ((size_t)256 << 20)

/* Callbacks per document: begin, then add with parts of the text, then end. The first failure ends the walk. */
struct documents_sink {
	/* bytes: of the document; 0 unless documents_opts.sizes */
	int (*begin)(void *user, uint64_t bytes, struct err *err);
	int (*add)(void *user, const char *text, size_t n, struct err *err);
	int (*end)(void *user, struct err *err);
	void *user;
};

struct documents_opts {
	struct objects *store;
	int object;
	const char *field; /* member or column with the text; NULL: DOCUMENTS_FIELD; "": the record itself, as JSON */
	bool (*takes)(const char *name); /* of a table's record: the columns to read */
	struct data_account *account; /* counts documents that are null */
	bool sizes; /* begin needs the size: a compressed text is decompressed twice */
};

/* Walks the documents and skips those that are empty or null. ERR_USAGE names the file, the line or row, and the
 * cause. */
int documents_walk(const struct documents_opts *o, const struct documents_sink *to, struct err *err);

/* ---- json_member.c ----
 * Extracts one string member of a JSON object without parsing the rest into a tree. */

enum json_member_result {
	JSON_MEMBER_FOUND,
	JSON_MEMBER_NULL,
	JSON_MEMBER_NONE,  /* missing, or not a string */
	JSON_MEMBER_WRONG, /* not a JSON object, or nested too deeply */
};

/* name: "text", or "a.text" for nested objects. The first of equal keys counts. Appends the string to ret as UTF-8;
 * unpaired surrogates become U+FFFD. */
enum json_member_result json_member(const char *text, size_t n, const char *name, struct buf *ret);

#endif
