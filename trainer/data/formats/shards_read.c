/* SPDX-License-Identifier: Apache-2.0 */
/* shards_read.c: bytes, pictures and raw images of the samples of shards. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"
#include "trainer/data/formats/formats.h"
#include "trainer/data/formats/shards_inside.h"
#include "trainer/data/pictures/pixels.h"

#define NPY_BYTES_MAX ((size_t)1 << 28)

void shards_say(const struct shards *d, enum split s, int64_t i, char ret[320])
{
	if (d->classes)
		snprintf(ret, 320, "%.300s", objects_address(d->store, (int)shards_sample(d, s, i)->object));
	else
		snprintf(ret, 320, "%.150s: %.150s", objects_name(d->store, (int)shards_sample(d, s, i)->object),
			 samples_name(&d->samples, d->row[s][i]));
}

static struct objects_range make_sample_range(const struct shards *d, const struct dataset_read *r)
{
	const struct sample *one = shards_sample(d, r->split, r->index);
	uint64_t left = objects_bytes(d->store, (int)one->object) - one->offset;

	return (struct objects_range){ .object = (int)one->object,
				       .at = one->offset,
				       .n = one->bytes < left ? one->bytes : (size_t)left,
				       .alone = r->alone && !d->raw && !one->packed,
				       .round = (uint32_t)r->epoch + 1,
				       .stop = r->stop };
}

bool shards_ahead(const struct dataset *base, const struct dataset_read *r)
{
	const struct shards *d = (const struct shards *)base;
	struct objects_range range = make_sample_range(d, r);

	return !range.n || objects_want(d->store, &range);
}

int shards_read_bytes(const struct shards *d, const struct dataset_read *r, void *to, struct err *err)
{
	const struct sample *one = shards_sample(d, r->split, r->index);
	const struct objects_range range = make_sample_range(d, r);

	return one->packed ? page_cache_read(d->pages, one, r->stop, to, err) : objects_read(d->store, &range, to, err);
}

int shards_fetch(const struct shards *d, const struct dataset_read *r, struct err *err)
{
	const struct sample *one = shards_sample(d, r->split, r->index);
	struct shards_hand *h = r->hand;
	char name[320];

	shards_say(d, r->split, r->index, name);
	if (!one->bytes || one->bytes > (d->raw ? NPY_BYTES_MAX : PICTURE_FILE_MAX))
		return err_set(err, ERR_CORRUPT, "%s: %s", name,
			       one->bytes ? "is too large for a picture" : "is empty");
	mem_reserve(&h->bytes, &h->cap, one->bytes);
	return shards_read_bytes(d, r, h->bytes, err);
}

/* Renders an encoded picture for the batch. */
static int read_shard_picture(const struct shards *d, const struct dataset_read *r, struct err *err)
{
	struct shards_hand *h = r->hand;
	struct picture_size size;
	struct picture_input in;
	char name[320];
	int rc = shards_fetch(d, r, err);

	if (rc)
		return rc;
	shards_say(d, r->split, r->index, name);
	in = (struct picture_input){ name, h->bytes, shards_sample(d, r->split, r->index)->bytes };
	rc = picture_load_memory(h->picture, &in, &size, err);
	return rc ? rc : image_set_render(&d->set, r, h->picture, size, err);
}

/* Checks the header: it must equal the first image's, which has the same shape. */
int shards_read_raw(const struct shards *d, const struct dataset_read *r, struct err *err)
{
	const struct sample *one = shards_sample(d, r->split, r->index);
	size_t pixels = pixels_count(&d->set.base);
	struct objects_range range = make_sample_range(d, r);
	char head[NPY_HEAD_MAX], name[320];
	int rc;

	shards_say(d, r->split, r->index, name);
	if (one->bytes != d->head_bytes + pixels)
		return err_set(err, ERR_CORRUPT, "%s: %u bytes: expected %zu like the other images", name, one->bytes,
			       d->head_bytes + pixels);
	range.n = d->head_bytes;
	rc = objects_read(d->store, &range, head, err);
	if (rc)
		return rc;
	if (memcmp(head, d->head, d->head_bytes))
		return err_set(err, ERR_CORRUPT, "%s: has another shape than the other images", name);
	range.at += d->head_bytes;
	range.n = pixels;
	return objects_read(d->store, &range, r->pixels, err);
}

int shards_read(const struct dataset *base, const struct dataset_read *r, struct err *err)
{
	struct shards *d = (struct shards *)base;
	struct err why = ERR_INIT;

	*r->label = shards_sample(d, r->split, r->index)->label;
	if (!(d->raw ? shards_read_raw(d, r, &why) : read_shard_picture(d, r, &why)))
		return 0;
	return image_set_failed(&d->set, r, &why, err);
}

void *shards_hand_new(void)
{
	struct shards_hand *h = mem_zalloc(sizeof(*h));

	h->picture = picture_new();
	return h;
}

void shards_hand_free(void *hand)
{
	struct shards_hand *h = hand;

	picture_free(h->picture);
	free(h->bytes);
	free(h);
}
