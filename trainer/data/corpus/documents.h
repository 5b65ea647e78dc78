/* documents.h: the documents of one file of a corpus, one after the other, in bounded memory. A plain text is one
 * document, a line of JSON one, a row of a table one. */
#ifndef DPT_DATA_DOCUMENTS_H
#define DPT_DATA_DOCUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/data/store/data_objects.h"

#define DOCUMENTS_FIELD "text"
#define DOCUMENTS_LINE_MAX ((size_t)256 << 20)

/* What is told of each document: begin, then its text in parts, then end. The first that fails ends the walk. */
struct documents_sink {
	int (*begin)(void *user, uint64_t bytes, struct err *err); /* of the whole; 0 unless documents_opts.sizes */
	int (*add)(void *user, const char *text, size_t n, struct err *err);
	int (*end)(void *user, struct err *err);
	void *user;
};

struct documents_opts {
	struct objects *store;
	int object;
	const char *field; /* member or column that holds the text; NULL: DOCUMENTS_FIELD */
	bool sizes;	   /* begin is told them: a packed text is unpacked once more for its own */
};

/* Empty documents are passed over. ERR_USAGE names file, line or row, and what is wrong. */
int documents_walk(const struct documents_opts *o, const struct documents_sink *to, struct err *err);

#endif
