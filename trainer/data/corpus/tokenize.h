/* SPDX-License-Identifier: Apache-2.0 */
/* tokenize.h: converts texts to token files, for `dptrain tokenize` and for folders of texts. The tokens do not
 * depend on how a document is stored. */
#ifndef DPT_DATA_TOKENIZE_H
#define DPT_DATA_TOKENIZE_H

#include "trainer/data/corpus/texts.h"
#include "trainer/data/dataset.h"
#include "trainer/data/tokenizer/tokenizer.h"

struct tokenize_opts {
	const struct texts *texts;
	const struct tokenizer *tokenizer;
	/* Folder, created if missing. Receives train.tokens and, unless empty, val.tokens. */
	const char *out;
	double val_share;      /* validation share of each document, if no file is for validation */
	const char *field;     /* member or column with the text; NULL: DOCUMENTS_FIELD */
	double data_timeout_s; /* remote stores; 0: default */
	/* Called after each piece of at most 1 MiB: bytes of text read so far. May be NULL. */
	void (*progress)(void *user, uint64_t bytes);
	void *user;
};

#define TOKENIZE_LEFT_OUT "left-out.tsv" /* next to the token files: what their documents lack */

struct tokenize_made {
	int64_t tokens[SPLIT_COUNT], documents[SPLIT_COUNT];
	struct data_account left; /* documents that are null */
};

/* Writes the token files of both splits; *ret: their sizes. ERR_USAGE: a text is unreadable or too short; ERR_IO: a
 * write failed. */
int tokenize(const struct tokenize_opts *o, struct tokenize_made *ret, struct err *err);

/* Writes the file of what was left out, or removes that of an earlier call. */
int tokenize_write_left_out(const char *folder, const struct data_account *left, struct err *err);

/* Adds what was left out when the token files of the folder were made. */
void tokenize_read_left_out(const char *folder, struct data_account *a);

#endif
