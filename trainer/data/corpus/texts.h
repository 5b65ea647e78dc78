/* texts.h: the files of a corpus: plain texts (*.txt), JSON lines (*.jsonl), tables (*.parquet). The first two may
 * be compressed (.gz, .zst). Local or in a store. */
#ifndef DPT_DATA_TEXTS_H
#define DPT_DATA_TEXTS_H

#include <stdbool.h>

#include "tracker/base/err.h"

#define TEXTS_EXPECTED "text (*.txt, *.jsonl, as they are or .gz, .zst)"

/* Addresses; those of a folder are sorted by name. Files whose name, or whose folder's name, begins with "val" or
 * "test" are for validation. Without any, the last part of each document is, from the start of a line. */
struct texts {
	char **name;
	int n;
	bool has_val;
};

enum text_kind { TEXT_PLAIN, TEXT_LINES, TEXT_TABLE, TEXT_NONE };
enum text_packing { TEXT_UNPACKED, TEXT_GZIP, TEXT_ZSTD };

/* Kind and compression by a file's name. */
enum text_kind texts_kind(const char *name, enum text_packing *ret);

/* Finds the files of spec: folders, files, braces, joined by "::" (shard_list.h). tables: includes the Parquet files
 * of folders. ERR_USAGE: no files. */
int texts_find(struct texts *ret, const char *spec, bool tables, struct err *err);
void texts_done(struct texts *t);
bool texts_in_val(const struct texts *t, int i);

#endif
