/* tokenize.h: texts to token files: what `dptrain tokenize` does, and what a folder of texts is turned into. The tokens
 * do not depend on how a document is stored. */
#ifndef DPT_DATA_TOKENIZE_H
#define DPT_DATA_TOKENIZE_H

#include "trainer/data/corpus/texts.h"
#include "trainer/data/dataset.h"
#include "trainer/data/tokenizer/tokenizer.h"

struct tokenize_opts {
	const struct texts *texts;
	const struct tokenizer *tokenizer;
	/* folder, made when absent; gets train.tokens and, when there is something in it, val.tokens */
	const char *out;
	double val_share; /* of each document, where no file is for evaluation */
	const char *field; /* that holds the text of a line or row; NULL: DOCUMENTS_FIELD */
	double data_timeout_s; /* of remote stores; 0: as usual */
	/* Called after each piece of text, of a MiB at most: bytes of text read so far, and the file that they end
	 * in, from 0. May be NULL. */
	void (*progress)(void *user, uint64_t bytes, int file);
	void *user;
};

struct tokenize_made {
	int64_t tokens[SPLIT_COUNT], documents[SPLIT_COUNT];
};

int tokenize(const struct tokenize_opts *o, struct tokenize_made *ret, struct err *err);

#endif
