/* tar_walk.h: the entries of a tar archive that can be read at any place, with where their bytes lie. Long names and
 * sizes come from pax records or GNU's entries. Behind a damaged header it goes on at the next whole one and says what
 * was passed over. Nothing of an archive is believed: sizes end at its end, records have a maximum. One thread. */
#ifndef DPT_DATA_TAR_WALK_H
#define DPT_DATA_TAR_WALK_H

#include <stddef.h>
#include <stdint.h>

#include "trainer/data/container/byte_source.h"

#define TAR_WALK_NAME_MAX 4096

struct tar_walk;

struct tar_walk_entry {
	const char *name;   /* until the next call; NULL: bytes that are no entry were passed over */
	uint64_t offset;    /* of its bytes; of what was passed over */
	uint64_t bytes;
};

int tar_walk_new(struct tar_walk **ret, const struct byte_source *s, struct err *err);
void tar_walk_free(struct tar_walk *w); /* NULL is fine */

/* 1: the next file, or damage; 0: the end; negative: it cannot be read. */
int tar_walk_next(struct tar_walk *w, struct tar_walk_entry *ret, struct err *err);

/* The n bytes (at most 65536) at an offset of an entry, most of the time without reading them anew. Valid until the
 * next call. */
int tar_walk_bytes(struct tar_walk *w, uint64_t offset, size_t n, const char **ret, struct err *err);

#endif
