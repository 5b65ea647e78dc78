/* folder.c: folders of images by class, each decoded when it is asked for. A file that cannot be read is named once,
 * counted, and left to the loader to replace. Normalised with the usual statistics of ImageNet, as the field does, so
 * that weights can be exchanged. */
#include "trainer/data/formats/folder.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/crc32c.h"
#include "trainer/data/formats/formats.h"
#include "trainer/data/pictures/picture.h"

#define CHANNELS 3
#define NOTICES 8

static const double imagenet_mean[CHANNELS] = { 0.485, 0.456, 0.406 }, imagenet_std[CHANNELS] = { 0.229, 0.224, 0.225 };

struct folder {
	struct dataset base;
	struct folder_files files;
	int resize; /* shorter side before the centre is cut out, for evaluation */
	bool strict, squeeze;
	_Atomic uint8_t *broken[SPLIT_COUNT]; /* [sample]: already counted */
	_Atomic int64_t n_broken;
	pthread_mutex_t lock; /* of the notices */
	char notice[NOTICES][512];
	int n_notices, n_unsaid;
};

static void folder_close(struct dataset *base)
{
	struct folder *d = (struct folder *)base;

	folder_files_done(&d->files);
	for (int s = 0; s < SPLIT_COUNT; s++)
		free((void *)d->broken[s]);
	pthread_mutex_destroy(&d->lock);
	free(d->base.path);
	free(d);
}

static void note(struct folder *d, const char *text)
{
	pthread_mutex_lock(&d->lock);
	if (d->n_notices < NOTICES)
		snprintf(d->notice[d->n_notices++], sizeof(d->notice[0]), "%s", text);
	else
		d->n_unsaid++;
	pthread_mutex_unlock(&d->lock);
}

static bool folder_notice(struct dataset *base, char *ret, size_t bytes)
{
	struct folder *d = (struct folder *)base;
	bool any;

	pthread_mutex_lock(&d->lock);
	any = d->n_notices || d->n_unsaid;
	if (d->n_notices) {
		snprintf(ret, bytes, "%s", d->notice[0]);
		d->n_notices--;
		memmove(d->notice[0], d->notice[1], (size_t)d->n_notices * sizeof(d->notice[0]));
	} else if (d->n_unsaid) {
		snprintf(ret, bytes, "%.300s: %d more images could not be read", d->base.path, d->n_unsaid);
		d->n_unsaid = 0;
	}
	pthread_mutex_unlock(&d->lock);
	return any;
}

static int64_t folder_broken(const struct dataset *base)
{
	return atomic_load(&((struct folder *)base)->n_broken);
}

/* Every class of training that no validation image has, as one notice. */
static int note_missing(struct folder *d, struct err *err)
{
	const struct folder_files *f = &d->files;
	bool *seen = calloc((size_t)f->n_classes + 1, sizeof(*seen));
	int missing = 0, first = 0;
	char text[512];

	if (!seen)
		return err_set(err, ERR_NOMEM, "out of memory: classes");
	for (int64_t i = 0; i < f->split[SPLIT_VAL].n; i++)
		seen[f->split[SPLIT_VAL].file[i].label] = true;
	for (int i = f->n_classes - 1; i >= 0; i--)
		if (!seen[i]) {
			missing++;
			first = i;
		}
	free(seen);
	if (!missing || !f->split[SPLIT_VAL].n)
		return 0;
	snprintf(text, sizeof(text), "%.300s: no validation images of %d of %d classes (%.60s)", d->base.path, missing,
		 f->n_classes, f->classes[first]);
	note(d, text);
	return 0;
}

/* Paths and labels, not pixels: reading every image would take longer than many a training. */
static void hash(struct folder *d)
{
	uint32_t c[2] = { 0 };

	for (int s = 0; s < SPLIT_COUNT; s++)
		for (int64_t i = 0; i < d->files.split[s].n; i++) {
			const char *name = folder_name(&d->files, (enum split)s, i);
			int32_t label = d->files.split[s].file[i].label;

			c[s] = crc32c(crc32c(c[s], name, strlen(name)), &label, sizeof(label));
		}
	snprintf(d->base.hash, sizeof(d->base.hash), "folder-%08x-%08x", c[SPLIT_TRAIN], c[SPLIT_VAL]);
}

static int describe(struct folder *d, const struct dataset_opts *o, struct err *err)
{
	struct dataset *b = &d->base;
	int side = o->image_size ? o->image_size : 224;

	b->ops = &dataset_folder;
	b->dtype = DTYPE_U8;
	b->height = b->width = side;
	b->channels = CHANNELS;
	b->classes = d->files.n_classes;
	d->strict = o->strict;
	d->squeeze = o->squeeze;
	d->resize = o->eval_resize ? o->eval_resize : (side * 256 + 112) / 224;
	if (d->resize < side)
		return err_set(err, ERR_USAGE,
			       "--eval-resize %d is smaller than the images of %d pixels that are cut out of "
			       "them", d->resize, side);
	if (o->classes && o->classes < b->classes)
		return err_set(err, ERR_USAGE, "%.300s: %d class folders, more than --classes %d", b->path, b->classes,
			       o->classes);
	b->classes = o->classes ? o->classes : b->classes;
	memcpy(b->mean, imagenet_mean, sizeof(imagenet_mean));
	memcpy(b->std, imagenet_std, sizeof(imagenet_std));
	for (int s = 0; s < SPLIT_COUNT; s++) {
		b->n_samples[s] = d->files.split[s].n;
		d->broken[s] = calloc((size_t)b->n_samples[s] + 1, sizeof(*d->broken[s]));
		if (!d->broken[s])
			return err_set(err, ERR_NOMEM, "out of memory: %lld images", (long long)b->n_samples[s]);
	}
	if (!b->n_samples[SPLIT_TRAIN])
		return err_set(err, ERR_USAGE, "%.300s: no images to train on", b->path);
	hash(d);
	return note_missing(d, err);
}

static int folder_open(struct dataset **ret, const struct dataset_opts *o, struct err *err)
{
	struct folder *d = calloc(1, sizeof(*d));
	int rc;

	if (!d || !(d->base.path = strdup(o->path))) {
		free(d);
		return err_set(err, ERR_NOMEM, "out of memory");
	}
	pthread_mutex_init(&d->lock, NULL);
	buf_init(&d->files.names, 0);
	rc = folder_scan(&d->files, o->path, o->val_share, err);
	if (!rc)
		rc = describe(d, o, err);
	if (rc) {
		folder_close(&d->base);
		return rc;
	}
	*ret = &d->base;
	return 0;
}

/* torchvision's RandomResizedCrop: 8 to 100 % of the area, sides from 3:4 to 4:3, ten attempts, else the middle. */
static void random_box(const struct dataset_sight *s, int64_t sample, struct picture_size size, struct picture_view *v)
{
	double area = (double)size.width * size.height, low = log(3.0 / 4), high = log(4.0 / 3), ratio;

	for (uint64_t attempt = 0; attempt < 10; attempt++) {
		uint64_t at = (uint64_t)sample * 40 + attempt * 4;
		double part = area * (0.08 + 0.92 * rng_uniform(s->key, at));
		double aspect = exp(low + (high - low) * rng_uniform(s->key, at + 1));

		v->width = rint(sqrt(part * aspect));
		v->height = rint(sqrt(part / aspect));
		if (v->width < 1 || v->height < 1 || v->width > size.width || v->height > size.height)
			continue;
		v->x = (double)rng_below(s->key, at + 2, (uint64_t)(size.width - v->width) + 1);
		v->y = (double)rng_below(s->key, at + 3, (uint64_t)(size.height - v->height) + 1);
		return;
	}
	ratio = (double)size.width / size.height;
	v->width = ratio > 4.0 / 3 ? rint(size.height * 4.0 / 3) : size.width;
	v->height = ratio < 3.0 / 4 ? rint(size.width * 4.0 / 3) : size.height;
	v->x = floor((size.width - v->width) / 2);
	v->y = floor((size.height - v->height) / 2);
}

/* The shorter side becomes `resize`, then the middle is cut out: as one box of the file. */
static void middle_box(const struct folder *d, struct picture_size size, struct picture_view *v)
{
	int shorter = size.width < size.height ? size.width : size.height;
	int width = (int)((int64_t)size.width * d->resize / shorter),
		height = (int)((int64_t)size.height * d->resize / shorter);
	double x = rint((width - v->out_width) / 2.0), y = rint((height - v->out_height) / 2.0);

	v->cut = false;
	v->x = x * size.width / width;
	v->y = y * size.height / height;
	v->width = (double)v->out_width * size.width / width;
	v->height = (double)v->out_height * size.height / height;
}

static int read_file(const struct folder *d, const struct dataset_read *r, struct err *err)
{
	char path[PATH_MAX];
	struct picture_size size;
	struct picture_view v = { .out_width = d->base.width, .out_height = d->base.height, .cut = true };
	int rc;

	snprintf(path, sizeof(path), "%.2000s/%.2000s", d->base.path, folder_name(&d->files, r->split, r->index));
	rc = picture_load(r->hand, path, &size, err);
	if (rc)
		return rc;
	v.width = size.width;
	v.height = size.height;
	if (r->sight && r->sight->random)
		random_box(r->sight, r->index, size, &v);
	else if (!d->squeeze)
		middle_box(d, size, &v);
	v.flip = r->sight && r->sight->flip;
	return picture_render(r->hand, &v, r->pixels, err);
}

static int folder_read(const struct dataset *base, const struct dataset_read *r, struct err *err)
{
	struct folder *d = (struct folder *)base;
	struct err why = ERR_INIT;
	int rc;

	*r->label = d->files.split[r->split].file[r->index].label;
	rc = read_file(d, r, &why);
	if (!rc)
		return 0;
	if (rc == ERR_CORRUPT && d->strict)
		return err_set(err, ERR_USAGE, "%s", why.text);
	if (rc == ERR_CORRUPT && !atomic_exchange(&d->broken[r->split][r->index], 1)) {
		atomic_fetch_add(&d->n_broken, 1);
		note(d, why.text);
	}
	return err_set(err, rc, "%s", why.text);
}

static int folder_hand(void **ret, struct err *err)
{
	struct picture *p;
	int rc = picture_new(&p, err);

	if (!rc)
		*ret = p;
	return rc;
}

static void folder_drop(void *hand)
{
	picture_free(hand);
}

const struct dataset_ops dataset_folder = {
	.name = "folder",
	.expects = "train/CLASS/*.jpg and val/CLASS/*.jpg, or CLASS/*.jpg (images by class; .jpeg and .png too)",
	.probe = folder_probe,
	.open = folder_open,
	.read = folder_read,
	.close = folder_close,
	.hand_new = folder_hand,
	.hand_free = folder_drop,
	.notice = folder_notice,
	.broken = folder_broken,
};
