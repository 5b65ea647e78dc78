/* token_set.h: the token files of a split as one sequence of tokens: NAME.tokens, or all NAME-*.tokens in name
 * order. All are made with one tokenizer. */
#ifndef DPT_DATA_TOKEN_SET_H
#define DPT_DATA_TOKEN_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"
#include "trainer/data/tokenizer/token_file.h"

struct token_set {
	struct token_file *file;
	char **name;	   /* file names in the folder */
	int n;		   /* 0: no such split */
	int64_t *first;	   /* [file]: its first token in the sequence; the last entry is the total */
	int64_t *document; /* … its first document */
	int64_t count, vocab;
	const char *tokenizer;
	int64_t documents; /* 0: a file has no document ends */
	int32_t separator; /* between them; -1: none */
};

/* Returns true if the folder has files of that split. */
bool token_set_probe(const char *folder, const char *name);

/* No files: an empty set. ERR_USAGE, in one line: a file does not match the others, or NAME.tokens is next to
 * NAME-*.tokens. */
int token_set_open(struct token_set *ret, const char *folder, const char *name, struct err *err);
void token_set_close(struct token_set *s); /* a zeroed struct is fine */

/* Reads tokens [first, first + n) of the sequence; the caller keeps the range within count. */
void token_set_read(const struct token_set *s, int64_t first, int64_t n, int32_t *ret);

/* Returns the end of document i, tokens [*ret_begin, end) of the sequence; -1: damaged file. Documents never span
 * files. */
int64_t token_set_document(const struct token_set *s, int64_t i, int64_t *ret_begin);

/* Writes "NAME.tokens: from token N on", with N relative to that file. */
void token_set_where(const struct token_set *s, int64_t token, char *ret, size_t bytes);

uint32_t token_set_sum(const struct token_set *s); /* combines token_file_sum of all files */

#endif
