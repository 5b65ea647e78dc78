/* SPDX-License-Identifier: Apache-2.0 */
/* token_file.h: a flat file of tokens: a header of 128 bytes, then the tokens, all little-endian.
 *   0  "DPTOKENS"      8  u32 version 1     12  u32 bytes of a token: 2 or 4
 *  16  u64 vocabulary  24  u64 tokens       32  name of the tokenizer, 96 bytes, zero-padded (tokenizer.h)
 * After the tokens, at the next multiple of 8, an optional table of document ends:
 *   0  "DPENDING"      8  i64 token between documents, -1 none     16  u64 documents
 *  24  u64 for each: number of tokens up to its end
 * Files are memory-mapped, so a file of any size costs only the pages that are read. */
#ifndef DPT_DATA_TOKEN_FILE_H
#define DPT_DATA_TOKEN_FILE_H

#include "tracker/base/file.h"

#define TOKEN_FILE_SUFFIX ".tokens"
#define TOKEN_FILE_NAME_BYTES 96

struct token_file {
	int64_t count, vocab;
	int width;
	char tokenizer[TOKEN_FILE_NAME_BYTES];
	const unsigned char *tokens;
	int64_t documents; /* 0: the file has no document ends */
	int32_t separator; /* between them; -1: none */
	const unsigned char *ends;
	struct file_map map;
};

struct token_writer;

struct token_writer_opts {
	/* Written as an unnamed file in the same folder if possible; token_writer_commit gives it this name. */
	const char *path;
	const char *tokenizer;
	int64_t vocab;
	int32_t separator; /* -1: none */
};

/* Creates the file with an empty header. ERR_IO, as for the functions below. One thread. */
int token_writer_open(struct token_writer **ret, const struct token_writer_opts *o, struct err *err);
int token_writer_add(struct token_writer *w, const int32_t *tokens, size_t n, struct err *err);
int token_writer_end(struct token_writer *w, struct err *err); /* ends the current document */
int64_t token_writer_documents(const struct token_writer *w);
int64_t token_writer_count(const struct token_writer *w);
int token_writer_commit(struct token_writer *w, struct err *err); /* completes the file on disk under its name */
void token_writer_close(struct token_writer *w);		  /* discards an uncommitted file; NULL is fine */

/* The token files of a split as one sequence of tokens: NAME.tokens, or all NAME-*.tokens in name
 * order. All are made with one tokenizer. */
struct token_set {
	struct token_file *file;
	char **name;	   /* file names in the folder */
	int n, cap;	   /* 0: no such split; capacity of name */
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

uint32_t token_set_sum(const struct token_set *s); /* combines the checksums of all files */

#endif
