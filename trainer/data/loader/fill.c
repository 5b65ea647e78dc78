/* SPDX-License-Identifier: Apache-2.0 */
/* fill.c: reads, augments and normalises one sample. */
#include "trainer/data/loader/slots.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"
#include "trainer/graph/document_mark.h"

#define FILE_BYTES_MAX ((size_t)1 << 31)

void fill_init(struct fill *f)
{
	if (f->dataset->kind == SAMPLE_IMAGE && f->dataset->dtype == DTYPE_U8)
		pixels_table(&f->table, f->dataset->channels, &f->norm);
}

struct dataset fill_sized(const struct dataset *d, enum split split)
{
	struct dataset sized = { .kind = d->kind, .dtype = d->dtype, .channels = d->channels, .seq_len = d->seq_len };

	sized.height = dataset_height(d, split);
	sized.width = dataset_width(d, split);
	return sized;
}

size_t fill_input_bytes(const struct fill *f)
{
	const struct dataset *d = &f->sized;

	return d->kind == SAMPLE_TOKENS ? (size_t)d->seq_len * sizeof(int32_t)
					: pixels_count(d) * dtype_bytes(f->dtype);
}

size_t fill_targets(const struct dataset *d)
{
	return d->kind == SAMPLE_TOKENS ? (size_t)d->seq_len : 1;
}

static size_t source_image_bytes(const struct dataset *d)
{
	return pixels_count(d) * dtype_bytes(d->dtype);
}

static size_t scratch_bytes(const struct dataset *d)
{
	return d->kind == SAMPLE_IMAGE ? 2 * source_image_bytes(d) : (size_t)d->seq_len * sizeof(int32_t);
}

void fill_hand_init(const struct fill *f, struct fill_hand *ret)
{
	const struct dataset_ops *ops = f->dataset->ops;

	*ret = (struct fill_hand){ .file.bytes.max = FILE_BYTES_MAX,
				   .scratch = mem_alloc(scratch_bytes(&f->sized) + 1),
				   .dataset_hand = ops->hand_new ? ops->hand_new() : NULL };
}

void fill_hand_done(const struct fill *f, struct fill_hand *h)
{
	if (h->dataset_hand)
		f->dataset->ops->hand_free(h->dataset_hand);
	free(h->scratch);
	buf_done(&h->file.bytes);
	*h = (struct fill_hand){ 0 };
}

/* Sets with worker scratch crop and mirror while they decode; the flip then moves from *move to the crop spec. */
static struct dataset_sight choose_crop_spec(const struct fill *f, struct rng_key key, struct augment_move *move)
{
	struct dataset_sight s = { .random = f->augment & DATASET_RANDOM_BOX, .key = key };

	if (!f->dataset->ops->hand_new || f->augment & DATASET_CROP)
		return s;
	s.flip = move->flip;
	move->flip = false;
	return s;
}

/* Returns the augmented pixels, in one half of the scratch; the other half is used too. */
static const void *auto_augment_image(const struct fill *f, const struct fill_hand *h, struct rng_key key,
				      const void *pixels)
{
	const struct dataset *d = &f->sized;
	const size_t bytes = source_image_bytes(d);
	struct augment_image im = { .pixels = pixels == h->scratch + bytes ? h->scratch + bytes : h->scratch,
				    .height = d->height, .width = d->width, .channels = d->channels };
	struct augment_step step[AUGMENT_STEPS_MAX];
	const int n = augment_draw_steps(f->auto_augment, key, &im, step);

	if (!n)
		return pixels;
	im.scratch = im.pixels == h->scratch ? h->scratch + bytes : h->scratch;
	if (pixels != im.pixels)
		memcpy(im.pixels, pixels, bytes);
	for (int i = 0; i < n; i++)
		augment_apply(&step[i], &im);
	return im.pixels;
}

static void erase_image_box(const struct fill *f, struct rng_key key, void *values)
{
	const struct augment_image im = { .height = f->sized.height, .width = f->sized.width,
					  .channels = f->sized.channels };
	struct augment_box box;

	if (f->random_erase > 0 && augment_draw_box(f->random_erase, key, &im, &box))
		augment_erase(&box, &im, f->dtype, values);
}

/* Reads an image, augments it if the set did not, and stores its normalised pixels at p->input. */
static int fill_image(const struct fill *f, const struct fill_hand *h, const struct fill_place *p, struct err *err)
{
	const struct dataset *d = f->dataset;
	const uint64_t visit = (uint64_t)p->epoch ^ (uint64_t)p->repeat << 40;
	const struct rng_key key = augment_key(f->seed, visit, p->index);
	struct augment_move move = augment_draw_move(key, f->augment & DATASET_CROP, f->augment & DATASET_FLIP);
	struct dataset_sight sight = choose_crop_spec(f, key, &move);
	const void *pixels = d->ops->peek ? d->ops->peek(d, f->split, p->index) : h->scratch;
	struct dataset_read r = { .split = f->split,
				  .index = p->index,
				  .pixels = d->ops->peek ? NULL : h->scratch,
				  .label = p->target,
				  .alone = p->alone,
				  .stop = h->stop,
				  .sight = &sight,
				  .hand = h->dataset_hand };
	int rc = dataset_read(d, &r, err);

	if (rc)
		return rc;
	if (move.dx || move.dy || move.flip) {
		pixels_move(&f->sized, move, pixels, h->scratch + source_image_bytes(&f->sized));
		pixels = h->scratch + source_image_bytes(&f->sized);
	}
	pixels = auto_augment_image(f, h, key, pixels);
	pixels_deliver(&f->sized, &f->table, pixels, f->dtype, p->input);
	erase_image_box(f, key, p->input);
	return 0;
}

static int read_encoded_file(const struct fill *f, struct fill_hand *h, const struct fill_place *p, struct err *err)
{
	struct dataset_read r = { .split = f->split, .index = p->index, .alone = p->alone, .stop = h->stop,
				  .hand = h->dataset_hand };
	int rc = f->dataset->ops->file(f->dataset, &r, &h->file, err);

	if (!rc)
		*f->raw_bytes += h->file.bytes.len;
	*p->target = h->file.label;
	return rc;
}

/* Reads the tokens of a sample, and marks those that begin a document. */
static int read_tokens(const struct fill *f, const struct fill_hand *h, const struct fill_place *p, struct err *err)
{
	int32_t *tokens = p->input, *places = f->marks ? (int32_t *)(void *)h->scratch : NULL;
	int rc = dataset_read(f->dataset,
			      &(struct dataset_read){ .split = f->split,
						      .index = p->index,
						      .tokens = tokens,
						      .targets = p->target,
						      .positions = places,
						      .alone = p->alone,
						      .stop = h->stop },
			      err);

	for (int64_t i = 0; !rc && places && i < f->dataset->seq_len; i++)
		if (!places[i])
			tokens[i] = DOCUMENT_MARK(tokens[i]);
	return rc;
}

int fill_sample(const struct fill *f, struct fill_hand *h, const struct fill_place *p, struct err *err)
{
	if (f->raw_bytes)
		return read_encoded_file(f, h, p, err);
	if (f->dataset->kind == SAMPLE_IMAGE)
		return fill_image(f, h, p, err);
	return read_tokens(f, h, p, err);
}

void fill_nothing(const struct fill *f, const struct fill_place *p)
{
	memset(p->input, 0, fill_input_bytes(f));
	for (size_t i = 0; i < fill_targets(f->dataset); i++)
		p->target[i] = -1;
}
