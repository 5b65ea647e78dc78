/* texts.h: the files of a corpus: plain texts (*.txt), JSON lines (*.jsonl), tables (*.parquet), the first two also
 * packed (.gz, .zst); here or in a store. */
#ifndef DPT_DATA_TEXTS_H
#define DPT_DATA_TEXTS_H

#include <stdbool.h>

#include "tracker/base/err.h"

#define TEXTS_EXPECTED "text (*.txt, *.jsonl, as they are or .gz, .zst)"

/* Addresses, those of a folder in the order of their names. Those whose names, or whose folder's, begin with "val" or
 * "test" are for evaluation; without any, the last part of each document is (from a line's beginning on). */
struct texts {
	char **name;
	int n;
	bool has_val;
};

enum text_kind { TEXT_PLAIN, TEXT_LINES, TEXT_TABLE, TEXT_NONE };
enum text_packing { TEXT_UNPACKED, TEXT_GZIP, TEXT_ZSTD };

/* By a file's name. */
enum text_kind texts_kind(const char *name, enum text_packing *ret);

/* spec: folders, files, braces, joined by "::" (shard_list.h). With `tables` Parquet files of folders too. ERR_USAGE
 * when there is none. */
int texts_find(struct texts *ret, const char *spec, bool tables, struct err *err);
void texts_done(struct texts *t);
bool texts_in_val(const struct texts *t, int i);

#endif
