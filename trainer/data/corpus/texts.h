/* SPDX-License-Identifier: Apache-2.0 */
/* texts.h: the files of a corpus: plain texts (*.txt), JSON lines (*.jsonl, *.ndjson), tables (*.parquet), in any case.
 * The first two may be compressed (.gz, .zst). Local or in a store. */
#ifndef DPT_DATA_TEXTS_H
#define DPT_DATA_TEXTS_H

#include "tracker/base/err.h"
#include "trainer/data/data_account.h"

#define TEXTS_EXPECTED "text (*.txt, *.jsonl, as they are or .gz, .zst)"

struct text_file {
	char *name;   /* its address */
	size_t below; /* offset in name of its name relative to the folder that was given */
	bool val;     /* for validation, if the corpus has_val */
};

/* The files of a folder, at any depth, are sorted by name. Those called val, valid, validation or test, with no letter
 * after it, or in a folder called so, are for validation. If there are both, test is not used. Without any, the last
 * part of each document is for validation, from the start of a line. */
struct texts {
	struct text_file *file;
	int n;
	bool has_val;
	struct data_account account;
};

enum text_kind { TEXT_PLAIN, TEXT_LINES, TEXT_TABLE, TEXT_ARRAY, TEXT_NONE };
enum text_packing { TEXT_UNPACKED, TEXT_GZIP, TEXT_ZSTD };

/* Kind and compression by a file's name. */
enum text_kind texts_kind(const char *name, enum text_packing *ret);

struct texts_opts {
	bool tables;	  /* include the Parquet files of folders */
	bool records;	  /* conversations: JSON lines, arrays (*.json) and tables alone */
	double timeout_s; /* remote stores; 0: default */
	bool incomplete;  /* accept numbered files some of which are missing */
};

/* Finds the files of spec: folders, files, braces, joined by "::" (shard_list.h). ERR_USAGE: no files. */
int texts_find(struct texts *ret, const char *spec, const struct texts_opts *o, struct err *err);
/* Hashes the bytes of `about`, to which it appends the files with their sizes and times, to 16 hex digits. ERR_USAGE: a
 * file cannot be read. */
int texts_key(const struct texts *t, struct buf *about, char ret[17], struct err *err);
void texts_done(struct texts *t);

#endif
