/* SPDX-License-Identifier: Apache-2.0 */
/* image_set.c: crop boxes, unreadable pictures and notices of a set. */
#include "config.h"

#include "trainer/data/formats/image_set.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/file.h"
#include "tracker/mem/mem.h"
#include "trainer/data/pictures/augment.h"

#define CHANNELS 3
#define BROKEN_LEAST 10 /* always tolerated */

static const double imagenet_mean[CHANNELS] = { 0.485, 0.456, 0.406 }, imagenet_std[CHANNELS] = { 0.229, 0.224, 0.225 };

void image_set_init(struct image_set *s, const char *path)
{
	s->base.path = mem_strdup(path);
	pthread_mutex_init(&s->lock, NULL);
}

void image_set_done(struct image_set *s)
{
	for (int i = 0; i < SPLIT_COUNT; i++)
		free((void *)s->broken[i]);
	pthread_mutex_destroy(&s->lock);
	free(s->base.path);
}

int image_set_check_pointer(const char *path, struct err *err)
{
	struct file_map m = { NULL, 0 };
	int rc = file_map_open(&m, path, NULL) ? 0 : file_refuse_pointer(path, m.bytes, m.n, err);

	file_map_close(&m);
	return rc;
}

void image_set_note(struct image_set *s, const char *text)
{
	pthread_mutex_lock(&s->lock);
	if (s->n_notices < IMAGE_SET_NOTICES)
		snprintf(s->notice[s->n_notices++], sizeof(s->notice[0]), "%s", text);
	else
		s->n_unsaid++;
	pthread_mutex_unlock(&s->lock);
}

bool image_set_notice(struct dataset *base, char *ret, size_t bytes)
{
	struct image_set *s = (struct image_set *)base;
	bool any;

	pthread_mutex_lock(&s->lock);
	any = s->n_notices || s->n_unsaid;
	if (s->n_notices) {
		snprintf(ret, bytes, "%s", s->notice[0]);
		s->n_notices--;
		memmove(s->notice[0], s->notice[1], (size_t)s->n_notices * sizeof(s->notice[0]));
	} else if (s->n_unsaid) {
		snprintf(ret, bytes, "%.300s: %d more images could not be read", s->base.path, s->n_unsaid);
		s->n_unsaid = 0;
	}
	pthread_mutex_unlock(&s->lock);
	return any;
}

int64_t image_set_broken(const struct dataset *base)
{
	return atomic_load(&((struct image_set *)base)->n_broken);
}

/* Shorter side before a centre crop. */
static int usual_resize(int side)
{
	return (side * 256 + 112) / 224;
}

static int set_image_sizes(struct image_set *s, const struct dataset_opts *o, struct err *err)
{
	struct dataset *b = &s->base;
	int side = o->image_size ? o->image_size : 224;

	b->dtype = DTYPE_U8;
	b->height = b->width = side;
	b->train_side = o->train_side == side ? 0 : o->train_side;
	b->channels = CHANNELS;
	s->squeeze = o->squeeze;
	s->resize = o->eval_resize ? o->eval_resize : usual_resize(side);
	if (s->resize < side)
		return err_set(err, ERR_USAGE,
			       "--eval-resize %d: expected at least the image size of %d pixels, because "
			       "images are cropped",
			       s->resize, side);
	memcpy(b->mean, imagenet_mean, sizeof(imagenet_mean));
	memcpy(b->std, imagenet_std, sizeof(imagenet_std));
	return 0;
}

int image_set_describe(struct image_set *s, const struct dataset_opts *o, int classes, const char *what,
		       struct err *err)
{
	struct dataset *b = &s->base;
	int rc = set_image_sizes(s, o, err);

	if (rc)
		return rc;
	s->strict = o->strict;
	s->max_unreadable = o->max_unreadable;
	s->inspected = o->inspected;
	if (o->classes && o->classes < classes)
		return err_set(err, ERR_USAGE, "%.300s: has %d %s, more than --classes %d", b->path, classes, what,
			       o->classes);
	b->classes = o->classes ? o->classes : classes;
	for (int i = 0; i < SPLIT_COUNT; i++)
		s->broken[i] = mem_array((size_t)b->n_samples[i], sizeof(*s->broken[i]));
	if (!b->n_samples[SPLIT_TRAIN])
		return err_set(err, ERR_USAGE, "%.300s: no images to train on%s", b->path,
			       b->n_samples[SPLIT_VAL] ? ": lower --val-split" : "");
	return 0;
}

/* Resizing the shorter side to `resize` and cropping the centre, expressed as one box of the file. */
static void choose_center_box(int resize, struct picture_size size, struct picture_view *v)
{
	int shorter = size.width < size.height ? size.width : size.height;
	int width = (int)((int64_t)size.width * resize / shorter),
	    height = (int)((int64_t)size.height * resize / shorter);
	double x = rint((width - v->out_width) / 2.0), y = rint((height - v->out_height) / 2.0);

	v->cut = false;
	v->x = x * size.width / width;
	v->y = y * size.height / height;
	v->width = (double)v->out_width * size.width / width;
	v->height = (double)v->out_height * size.height / height;
}

int image_set_render(const struct image_set *s, const struct dataset_read *r, struct picture *p,
		     struct picture_size size, struct err *err)
{
	struct picture_view v = { .width = size.width,
				  .height = size.height,
				  .out_width = dataset_width(&s->base, r->split),
				  .out_height = dataset_height(&s->base, r->split),
				  .cut = true };
	struct augment_part part;

	if (r->sight && r->sight->random) {
		part = augment_draw_part(r->sight->key, size.width, size.height);
		v.x = part.x;
		v.y = part.y;
		v.width = part.width;
		v.height = part.height;
	} else if (!s->squeeze) {
		choose_center_box(v.out_width == s->base.width ? s->resize : usual_resize(v.out_width), size, &v);
	}
	v.flip = r->sight && r->sight->flip;
	return picture_render(p, &v, r->pixels, err);
}

int image_set_lost(struct image_set *s, int64_t n, const char *why, struct err *err)
{
	int64_t broken = atomic_fetch_add(&s->n_broken, n) + n;
	double all = (double)(s->base.n_samples[SPLIT_TRAIN] + s->base.n_samples[SPLIT_VAL]);
	double most = s->max_unreadable * all;
	struct err found = ERR_INIT;
	int rc;

	if (broken <= BROKEN_LEAST || !s->max_unreadable || (double)broken <= most)
		return 0;
	rc = err_set(
		s->inspected ? &found : err, ERR_LIMIT,
		"%.200s: %lld samples cannot be read, more than %.0f (--max-unreadable %g of %.0f, at least %d): "
		"one of them: %.*s",
		s->base.path, (long long)broken, most > BROKEN_LEAST ? most : BROKEN_LEAST, s->max_unreadable, all,
		BROKEN_LEAST, (int)strcspn(why, "\n"), why);
	if (!s->inspected)
		return rc;
	s->max_unreadable = 0; /* said once */
	err_prefix(&found, "a training refuses this set");
	image_set_note(s, found.text);
	return 0;
}

int image_set_failed(struct image_set *s, const struct dataset_read *r, const struct err *why, struct err *err)
{
	int rc = 0;

	if (why->code == ERR_CORRUPT && s->strict)
		return err_set(err, ERR_USAGE, "%s", why->text);
	if (why->code == ERR_CORRUPT && !atomic_exchange(&s->broken[r->split][r->index], 1)) {
		image_set_note(s, why->text);
		rc = image_set_lost(s, 1, why->text, err);
	}
	return rc ? rc : err_set(err, why->code, "%s", why->text);
}
