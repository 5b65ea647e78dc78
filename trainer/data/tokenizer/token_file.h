/* token_file.h: a flat file of tokens: a header of 128 bytes, then the tokens, all little-endian.
 *   0  "DPTOKENS"      8  u32 version 1     12  u32 bytes of a token: 2 or 4
 *  16  u64 vocabulary  24  u64 tokens       32  name of the tokenizer, 96 bytes, the rest zeros (tokenizer.h)
 * Behind the tokens, from the next multiple of 8 on, may stand where documents end:
 *   0  "DPENDING"      8  i64 token between documents, -1 none     16  u64 documents
 *  24  u64 for each: tokens up to its end
 * Read through a mapping, so that a file of any size costs only the pages that are looked at. */
#ifndef DPT_DATA_TOKEN_FILE_H
#define DPT_DATA_TOKEN_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"
#include "tracker/base/file_map.h"

#define TOKEN_FILE_SUFFIX ".tokens"
#define TOKEN_FILE_NAME_BYTES 96

struct token_file {
	int64_t count, vocab;
	int width;
	char tokenizer[TOKEN_FILE_NAME_BYTES];
	const unsigned char *tokens;
	int64_t documents; /* 0: the file does not say where they end */
	int32_t separator; /* between them; -1: none */
	const unsigned char *ends;
	struct file_map map;
};

/* ERR_USAGE, in one line, for a file that is missing, shorter than it says, or something else. */
int token_file_open(struct token_file *ret, const char *path, struct err *err);
void token_file_close(struct token_file *f); /* a zeroed struct is fine */

/* Tokens [first, first + n) as they stand; the caller keeps within count. */
void token_file_read(const struct token_file *f, int64_t first, int64_t n, int32_t *ret);

/* Where document i ends, in tokens: beyond the one before it, at most count, or -1 in a damaged file. */
int64_t token_file_end(const struct token_file *f, int64_t i);

/* Of the header, the ends and 64 places between them: a file of any size is told from another one at once. */
uint32_t token_file_sum(const struct token_file *f);

struct token_writer;

struct token_writer_opts {
	/* written beside it, where that can be without a name, and put there by token_writer_commit */
	const char *path;
	const char *tokenizer;
	int64_t vocab;
	int32_t separator; /* -1: none */
};

int token_writer_open(struct token_writer **ret, const struct token_writer_opts *o, struct err *err);
int token_writer_add(struct token_writer *w, const int32_t *tokens, size_t n, struct err *err);
int token_writer_end(struct token_writer *w, struct err *err); /* a document ends here */
int64_t token_writer_documents(const struct token_writer *w);
int64_t token_writer_count(const struct token_writer *w);
int token_writer_commit(struct token_writer *w, struct err *err); /* the file is whole, on disk and in its place */
void token_writer_close(struct token_writer *w);		  /* what was not committed is removed; NULL is fine */

#endif
