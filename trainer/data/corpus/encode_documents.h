/* encode_documents.h: encodes texts on all cores. The caller adds pieces of documents in order; threads encode them;
 * tokens are written in the order of the pieces. Memory is bounded by a fixed number of jobs. One caller. */
#ifndef DPT_DATA_ENCODE_DOCUMENTS_H
#define DPT_DATA_ENCODE_DOCUMENTS_H

#include "trainer/data/dataset.h"
#include "trainer/data/tokenizer/token_file.h"
#include "trainer/data/tokenizer/tokenizer.h"

struct encode;

struct encode_opts {
	const struct tokenizer *tokenizer; /* borrowed, as are the writers */
	struct token_writer *to[SPLIT_COUNT];
	int threads; /* 0: one per core */
};

/* Starts the threads. ERR_NOMEM, also if no thread starts. */
int encode_new(struct encode **ret, const struct encode_opts *o, struct err *err);
void encode_free(struct encode *e); /* joins the threads and drops unfinished work; NULL is fine */

struct encode_piece {
	enum split split;
	const char *text; /* n bytes, copied */
	size_t n;
	bool begins, ends; /* of the document: writes the separator before it, and its end after it */
};

/* Adds a piece. ERR_NOMEM, or a write error. */
int encode_add(struct encode *e, const struct encode_piece *p, struct err *err);

/* Encodes and writes everything that was added. */
int encode_finish(struct encode *e, struct err *err);

#endif
