/* SPDX-License-Identifier: Apache-2.0 */
/* shards_inside.h: shared by the files of the format "shards": shards_find.c (positions and properties of samples),
 * shards_read.c (bytes and pictures) and shards.c. Private to them. */
#ifndef DPT_DATA_SHARDS_INSIDE_H
#define DPT_DATA_SHARDS_INSIDE_H

#include "trainer/data/container/samples.h"
#include "trainer/data/container/shard_list.h"
#include "trainer/data/formats/image_set.h"
#include "trainer/data/pictures/npy.h"
#include "trainer/data/store/data_objects.h"

/* ---- page_cache.c ----
 * A cache of uncompressed pages of shards (Parquet's and Arrow's), kept for neighbouring samples. The set's window is
 * so small that its pages fit (struct dataset_page_window): each is then decompressed once an epoch. Thread-safe. */

#define PAGE_CACHE_BYTES ((uint64_t)512 << 20)

struct page_cache;

/* Creates an empty cache of pages of `store`, which is borrowed, with at most memory_bytes, except for pages that are
 * being copied from. */
struct page_cache *page_cache_new(struct objects *store, uint64_t memory_bytes);
void page_cache_free(struct page_cache *p); /* NULL is fine */

struct page_totals {
	int64_t pages, samples; /* >= 1 */
	uint64_t largest;	/* bytes of a page */
};

/* The largest window of a set whose pages do not all fit. The memory is the same on every machine, so that the order of
 * samples does not depend on it. */
struct dataset_page_window page_cache_window(const struct page_totals *t, uint64_t memory_bytes);

/* Reads the bytes of a compressed sample into `to`. ERR_CORRUPT: its page is damaged. */
int page_cache_read(struct page_cache *p, const struct sample *one, const struct stop *stop, void *to, struct err *err);

/* ---- shards_inside.c ---- */

struct shards {
	struct image_set set;
	struct objects *store;
	struct page_cache *pages;
	struct samples samples;
	char **classes; /* single pictures in class folders; NULL: shards */
	int n_classes;
	struct shard_facts facts;
	uint64_t cached_bytes;	    /* in the cache when the set was opened */
	uint32_t *row[SPLIT_COUNT]; /* [sample of the split]: row in samples */
	int64_t *piece[SPLIT_COUNT];
	bool raw;		 /* raw images of one size */
	char head[NPY_HEAD_MAX]; /* … and their common header */
	size_t head_bytes;
};

/* Worker scratch of one thread. */
struct shards_hand {
	struct picture *picture;
	uint8_t *bytes;
	size_t cap;
};

static inline const struct sample *shards_sample(const struct shards *d, enum split s, int64_t i)
{
	return &d->samples.at[d->row[s][i]];
}

/* Describes a sample for messages: "train-000003.tar: 000012345.jpg". */
void shards_say(const struct shards *d, enum split s, int64_t i, char ret[320]);

/* Opens the objects, finds the samples and splits them. Sets n_samples, piece and n_pieces. */
int shards_find(struct shards *d, const struct dataset_opts *o, struct err *err);

/* Sets sizes, classes, normalisation and hash, and adds notices. raw_ops: operations for raw images. */
int shards_describe(struct shards *d, const struct dataset_opts *o, const struct dataset_ops *raw_ops, struct err *err);

/* Reads a sample's stored bytes, decompressed, into `to`, which must have room. */
int shards_read_bytes(const struct shards *d, const struct dataset_read *r, void *to, struct err *err);

/* Reads the same bytes into the worker scratch r->hand. */
int shards_fetch(const struct shards *d, const struct dataset_read *r, struct err *err);

/* Reads the pixels of a raw image. */
int shards_read_raw(const struct shards *d, const struct dataset_read *r, struct err *err);

/* dataset_ops' ahead, read, hand_new and hand_free. */
bool shards_ahead(const struct dataset *base, const struct dataset_read *r);
int shards_read(const struct dataset *base, const struct dataset_read *r, struct err *err);
void *shards_hand_new(void);
void shards_hand_free(void *hand);

#endif
