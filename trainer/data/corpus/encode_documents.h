/* encode_documents.h: texts to tokens on all cores. Pieces of documents are handed in, one after the other; threads encode them;
 * tokens are written in the order of the pieces. Memory is that of a fixed number of jobs. One caller. */
#ifndef DPT_DATA_ENCODE_DOCUMENTS_H
#define DPT_DATA_ENCODE_DOCUMENTS_H

#include "trainer/data/dataset.h"
#include "trainer/data/tokenizer/token_file.h"
#include "trainer/data/tokenizer/tokenizer.h"

struct encode;

struct encode_opts {
	const struct tokenizer *tokenizer; /* borrowed, as are the writers */
	struct token_writer *to[SPLIT_COUNT];
	int threads; /* 0: one for each core */
};

int encode_new(struct encode **ret, const struct encode_opts *o, struct err *err);
void encode_free(struct encode *e); /* ends the threads; what was not finished is dropped; NULL is fine */

struct encode_piece {
	enum split split;
	const char *text; /* n bytes, copied */
	size_t n;
	bool begins, ends; /* the document, which gets the separator in front and its end written down behind */
};

/* ERR_NOMEM, or what writing fails with. */
int encode_add(struct encode *e, const struct encode_piece *p, struct err *err);

/* Everything that was handed in has been written. */
int encode_finish(struct encode *e, struct err *err);

#endif
