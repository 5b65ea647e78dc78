/* pages.h: packed pages of shards (Parquet's), unpacked and kept for their neighbours: the last ones that were asked
 * for, up to so many bytes. Any thread. */
#ifndef DPT_DATA_PAGES_H
#define DPT_DATA_PAGES_H

#include "trainer/data/container/samples.h"
#include "trainer/data/store/objects.h"

#define PAGES_BYTES ((uint64_t)256 << 20)

struct pages;

/* most_bytes: of all pages that are kept, but for those that are being copied of. */
int pages_new(struct pages **ret, struct objects *store, uint64_t most_bytes, struct err *err);
void pages_free(struct pages *p); /* NULL is fine */

/* The bytes of a packed sample. ERR_CORRUPT: its page is damaged. */
int pages_read(struct pages *p, const struct sample *one, const struct stop *stop, void *to, struct err *err);

#endif
