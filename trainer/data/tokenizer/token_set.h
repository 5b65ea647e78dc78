/* token_set.h: the token files of a split as one row of tokens: NAME.tokens alone, or all NAME-*.tokens in the order of
 * their names, made with one tokenizer. */
#ifndef DPT_DATA_TOKEN_SET_H
#define DPT_DATA_TOKEN_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"
#include "trainer/data/tokenizer/token_file.h"

struct token_set {
	struct token_file *file;
	char **name; /* of each, in the folder */
	int n;	     /* 0: there is no such split */
	int64_t *first;	   /* [file]: its first token in the row; all of them behind the last */
	int64_t *document; /* … and its first document */
	int64_t count, vocab;
	const char *tokenizer;
	int64_t documents; /* 0: not every file says where they end */
	int32_t separator; /* between them; -1: none */
};

/* Whether the folder holds any of that split. */
bool token_set_probe(const char *folder, const char *name);

/* Without any file: an empty set. ERR_USAGE, in one line, for a file that cannot be one of it, and where NAME.tokens
 * lies beside others. */
int token_set_open(struct token_set *ret, const char *folder, const char *name, struct err *err);
void token_set_close(struct token_set *s); /* a zeroed struct is fine */

/* Tokens [first, first + n) of the row; the caller keeps within count. */
void token_set_read(const struct token_set *s, int64_t first, int64_t n, int32_t *ret);

/* Document i's tokens [*ret_begin, end) of the row: its end, or -1 in a damaged file. None goes over a file's end. */
int64_t token_set_document(const struct token_set *s, int64_t i, int64_t *ret_begin);

/* "NAME.tokens: from token N on", N counted in that file. */
void token_set_where(const struct token_set *s, int64_t token, char *ret, size_t bytes);

uint32_t token_set_sum(const struct token_set *s); /* of all files (token_file_sum) */

#endif
