/* origin.h: whose run a file below the followed folder belongs to. Our journals say so in their first record; of files
 * that others wrote the folder is the run and its path gives the names. Private to web/store. */
#ifndef DPT_STORE_ORIGIN_H
#define DPT_STORE_ORIGIN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "web/store/write/ingest.h"

struct origin {
	bool known, foreign;
	bool beside; /* of the run of the folder above (tb_hparams.h) */
	char run[33], writer[33];
};

#define ORIGIN_HEAD_BYTES 4096 /* of a file's beginning; our first records are shorter */

/* head: the first n bytes, ORIGIN_HEAD_BYTES of them when there are so many. 1, 0 too short yet (others' files too, as
 * long as they say no more than their version), -1 not a file of runs. */
int origin_find(struct origin *ret, const char *path, const void *head, size_t n);

/* The file speaks of the run of the folder above its own. */
void origin_lift(struct origin *o, const char *path);

/* Names for the run of a file that others wrote; root: the followed folder's own name, for files that lie in it. The
 * texts lie in room or are borrowed. */
struct origin_room {
	char folder[PATH_MAX], first[PATH_MAX];
};

void origin_names(const struct origin *o, const char *path, const char *root, struct ingest_foreign *ret,
		  struct origin_room *room);

#endif
