/* pages.h: packed pages of shards (Parquet's), unpacked and kept for their neighbours: the last ones that were asked
 * for in memory, up to so many bytes, and the others in a file as long as that has room. Any thread. */
#ifndef DPT_DATA_PAGES_H
#define DPT_DATA_PAGES_H

#include "trainer/data/container/samples.h"
#include "trainer/data/store/objects.h"

#define PAGES_BYTES ((uint64_t)256 << 20)
#define PAGES_ASIDE_BYTES ((uint64_t)8 << 30)

struct pages;
struct aside;

struct pages_opts {
	struct objects *store;
	uint64_t memory_bytes; /* of all pages that are kept there, but for those that are being copied of */
	struct aside *aside;   /* for the others; it is theirs, also where pages_new fails; NULL: they are forgotten */
};

int pages_new(struct pages **ret, const struct pages_opts *o, struct err *err);
void pages_free(struct pages *p); /* NULL is fine */

/* The bytes of a packed sample. ERR_CORRUPT: its page is damaged. */
int pages_read(struct pages *p, const struct sample *one, const struct stop *stop, void *to, struct err *err);

#endif
