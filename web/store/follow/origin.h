/* origin.h: finds the run of a file below the followed folder. Our journals name it in their first record. For
 * foreign files the folder is the run, and its path supplies the names. Private to web/store. */
#ifndef DPT_STORE_ORIGIN_H
#define DPT_STORE_ORIGIN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "web/store/write/ingest.h"

struct origin {
	bool known, foreign;
	bool annotates; /* a note on the run in the parent folder (tb_hparams.h) */
	char run[33], writer[33];
};

#define ORIGIN_HEAD_BYTES 4096 /* bytes read of a file's head; our first records are shorter */

/* head: the first n bytes, at most ORIGIN_HEAD_BYTES. 1: found, 0: too short yet (also foreign files with only a
 * version record), -1: not a file of runs. */
int origin_find(struct origin *ret, const char *path, const void *head, size_t n);

/* The file is a note on the run in the parent folder of its own. */
void origin_lift(struct origin *o, const char *path);

/* Names for the run of a foreign file; root: name of the followed folder, for files directly in it. The texts are in
 * room or borrowed. */
struct origin_room {
	char folder[PATH_MAX], first[PATH_MAX];
};

void origin_names(const struct origin *o, const char *path, const char *root, struct ingest_foreign *ret,
		  struct origin_room *room);

#endif
