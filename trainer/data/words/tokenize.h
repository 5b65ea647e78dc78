/* tokenize.h: texts to token files: what `dptrain tokenize` does, and what a folder of texts is turned into. */
#ifndef DPT_DATA_TOKENIZE_H
#define DPT_DATA_TOKENIZE_H

#include "trainer/data/dataset.h"
#include "trainer/data/words/tokenizer.h"

#define TOKENIZE_SUFFIX ".txt"

/* The *.txt files of a folder in the order of their names, or one file. Those whose names begin with "val" or "test"
 * are for evaluation; without any, the last part of each text is (from a line's beginning on). */
struct texts {
	char **name; /* paths */
	int n;
	bool has_val;
};

int texts_find(struct texts *ret, const char *path, struct err *err); /* ERR_USAGE when there is none */
void texts_done(struct texts *t);
bool texts_in_val(const struct texts *t, int i);

struct tokenize_opts {
	const struct texts *texts;
	const struct tokenizer *tokenizer;
	const char
		*out; /* folder, made when absent; gets train.tokens and, when there is something in it, val.tokens */
	double val_share; /* of each text, where no file is for evaluation */
};

int tokenize(const struct tokenize_opts *o, int64_t ret_count[SPLIT_COUNT], struct err *err);

#endif
