/* shards_inside.h: what the files of the format "shards" share: where its samples lie (shards_find.c), their bytes and
 * pictures (shards_read.c), what is known of the set (shards_describe.c). Private to them and shards.c. */
#ifndef DPT_DATA_SHARDS_INSIDE_H
#define DPT_DATA_SHARDS_INSIDE_H

#include "trainer/data/container/samples.h"
#include "trainer/data/container/shard_list.h"
#include "trainer/data/formats/image_set.h"
#include "trainer/data/pictures/npy.h"
#include "trainer/data/formats/page_cache.h"
#include "trainer/data/store/data_objects.h"

struct shards {
	struct image_set set;
	struct objects *store;
	struct page_cache *pages;
	struct samples samples;
	char **classes; /* of single pictures, which lie in folders by class; NULL: of shards */
	int n_classes;
	struct shard_facts facts;
	uint64_t cached_bytes;	    /* that the cache held before anything was read */
	uint32_t *row[SPLIT_COUNT]; /* [sample of the split]: its row in samples */
	int64_t *piece[SPLIT_COUNT];
	bool raw;		    /* images as they are, all of one size */
	char head[NPY_HEAD_MAX];    /* … and with one header */
	size_t head_bytes;
};

/* What a thread reads into. */
struct shards_hand {
	struct picture *picture;
	uint8_t *bytes;
	size_t cap;
	struct buf stamp; /* of the object that was read last, where evaluation pictures are kept */
};

static inline const struct sample *shards_sample(const struct shards *d, enum split s, int64_t i)
{
	return &d->samples.at[d->row[s][i]];
}

/* "train-000003.tar: 000012345.jpg" */
void shards_say(const struct shards *d, enum split s, int64_t i, char ret[320]);

/* Opens the objects, finds their samples and deals them to the splits; n_samples, piece and n_pieces are set then. */
int shards_find(struct shards *d, const struct dataset_opts *o, struct err *err);

/* Sizes, classes, normalisation, hash, and what is to be said of the set. raw_ops: of images that are stored as they
 * are. */
int shards_describe(struct shards *d, const struct dataset_opts *o, const struct dataset_ops *raw_ops, struct err *err);

/* A sample's bytes as they are stored, unpacked; `to` has room for them. */
int shards_read_bytes(const struct shards *d, const struct dataset_read *r, void *to, struct err *err);

/* The same, in the hand. */
int shards_fetch(const struct shards *d, const struct dataset_read *r, struct err *err);

/* The pixels of an image that is stored as it is. */
int shards_read_raw(const struct shards *d, const struct dataset_read *r, struct err *err);

/* As dataset_ops' ahead, read, hand_new and hand_free. */
bool shards_ahead(const struct dataset *base, const struct dataset_read *r);
int shards_read(const struct dataset *base, const struct dataset_read *r, struct err *err);
int shards_hand_new(void **ret, struct err *err);
void shards_hand_free(void *hand);

#endif
