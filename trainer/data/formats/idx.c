/* idx.c: a folder of the MNIST family: train and t10k (or test) images and labels as IDX files, plain or gzip. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/crc32c.h"
#include "trainer/data/formats/formats.h"
#include "trainer/data/formats/idx_file.h"
#include "trainer/data/pictures/pixels.h"

#define SIDE_MAX 65535
#define NAME_BYTES 256

struct idx {
	struct dataset base;
	struct idx_file images[SPLIT_COUNT], labels[SPLIT_COUNT];
};

struct idx_names { /* of the four files in the folder; "": missing */
	char images[SPLIT_COUNT][NAME_BYTES], labels[SPLIT_COUNT][NAME_BYTES];
};

static bool name_matches_split(const char *name, enum split s)
{
	return s == SPLIT_TRAIN ? strstr(name, "train") != NULL : strstr(name, "t10k") || strstr(name, "test");
}

static size_t stem_length(const char *name)
{
	size_t n = strlen(name);

	return n > 3 && !strcmp(name + n - 3, ".gz") ? n - 3 : n;
}

/* Assigns a name to one of the four files. Prefers the plain file to its gzip copy. */
static int choose_idx_name(char *have, const char *name, const char *dir, struct err *err)
{
	size_t a = stem_length(have), b = stem_length(name);

	if (*have && (a != b || memcmp(have, name, a)))
		return err_set(err, ERR_USAGE,
			       "%.200s: has both %.60s and %.60s: put each data set into its own folder", dir, have,
			       name);
	if (!*have || name[b] == 0)
		snprintf(have, NAME_BYTES, "%s", name);
	return 0;
}

static int find_idx_names(const char *dir, struct idx_names *ret, struct err *err)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int rc = 0;

	memset(ret, 0, sizeof(*ret));
	if (!d)
		return err_set(err, ERR_USAGE, "data path %.200s: %s", dir, strerror(errno));
	while (!rc && (e = readdir(d))) {
		const char *name = e->d_name;
		bool images = strstr(name, "images"), labels = strstr(name, "labels");

		if (!strstr(name, "idx") || images == labels || name[0] == '.')
			continue;
		for (int s = 0; s < SPLIT_COUNT && !rc; s++)
			if (name_matches_split(name, (enum split)s))
				rc = choose_idx_name(images ? ret->images[s] : ret->labels[s], name, dir, err);
	}
	closedir(d);
	return rc;
}

static bool idx_probe(const char *path)
{
	struct idx_names n;

	if (find_idx_names(path, &n, NULL))
		return true; /* open reports the error */
	return *n.images[SPLIT_TRAIN] || *n.labels[SPLIT_TRAIN] || *n.images[SPLIT_VAL] || *n.labels[SPLIT_VAL];
}

static int open_idx_in_dir(struct idx_file *f, const char *dir, const char *name, struct err *err)
{
	char path[4096 + NAME_BYTES];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return idx_file_open(f, path, err);
}

/* Checks the dimensions of a split's images. Validation images must have the size of the training images. */
static int check_idx_images(struct idx *d, enum split s, const struct idx_names *n, struct err *err)
{
	const struct idx_file *f = &d->images[s];
	int64_t c = f->ndim == 4 ? f->dim[3] : 1;
	const char *name = n->images[s];

	if (f->ndim < 3)
		return err_set(err, ERR_USAGE, "%.200s/%.80s: has %d dimensions: expected 3, or 4 with channels",
			       d->base.path, name, f->ndim);
	if (f->dim[0] < 1 || f->dim[0] > DATASET_SAMPLES_MAX || f->dim[1] < 1 || f->dim[1] > SIDE_MAX ||
	    f->dim[2] < 1 || f->dim[2] > SIDE_MAX || c < 1 || c > DATASET_CHANNELS_MAX)
		return err_set(
			err, ERR_USAGE,
			"%.200s/%.80s: %lld images of %lld x %lld x %lld: expected at least one image, sides of 1 "
			"to %d and 1 to %d channels",
			d->base.path, name, (long long)f->dim[0], (long long)f->dim[1], (long long)f->dim[2],
			(long long)c, SIDE_MAX, DATASET_CHANNELS_MAX);
	if (s == SPLIT_TRAIN) {
		d->base.height = (int)f->dim[1];
		d->base.width = (int)f->dim[2];
		d->base.channels = (int)c;
	} else if (d->base.height != f->dim[1] || d->base.width != f->dim[2] || d->base.channels != c) {
		return err_set(err, ERR_USAGE,
			       "%.200s/%.80s: images of %lld x %lld x %lld: the training images are %d x %d x %d",
			       d->base.path, name, (long long)f->dim[1], (long long)f->dim[2], (long long)c,
			       d->base.height, d->base.width, d->base.channels);
	}
	d->base.n_samples[s] = f->dim[0];
	return 0;
}

static int check_idx_labels(struct idx *d, enum split s, const struct idx_names *n, int classes, struct err *err)
{
	const struct idx_file *f = &d->labels[s];
	const char *name = n->labels[s];

	if (f->ndim != 1)
		return err_set(err, ERR_USAGE, "%.200s/%.80s: has %d dimensions: expected 1", d->base.path, name,
			       f->ndim);
	if (f->dim[0] != d->base.n_samples[s])
		return err_set(err, ERR_USAGE, "%.200s/%.80s: %lld labels, but %.80s has %lld images", d->base.path,
			       name, (long long)f->dim[0], n->images[s], (long long)d->base.n_samples[s]);
	for (size_t i = 0; i < f->bytes; i++) {
		if (classes && f->data[i] >= classes)
			return err_set(err, ERR_USAGE, "%.200s/%.80s: label %d of sample %zu: must be below %d classes",
				       d->base.path, name, f->data[i], i, classes);
		if (f->data[i] >= d->base.classes)
			d->base.classes = f->data[i] + 1;
	}
	if (classes)
		d->base.classes = classes;
	return 0;
}

static int open_idx_split(struct idx *d, enum split s, const struct idx_names *n, int classes, struct err *err)
{
	const char *dir = d->base.path;
	bool images = *n->images[s], labels = *n->labels[s];
	int rc;

	if (s == SPLIT_VAL && !images && !labels)
		return 0;
	if (!images || !labels)
		return err_set(err, ERR_USAGE, "%.200s: no file of %s %s (%s-%s-ubyte or the same with .gz)", dir,
			       s == SPLIT_TRAIN ? "training" : "test", images ? "labels" : "images",
			       s == SPLIT_TRAIN ? "train" : "t10k", images ? "labels-idx1" : "images-idx3");
	rc = open_idx_in_dir(&d->images[s], dir, n->images[s], err);
	if (!rc)
		rc = check_idx_images(d, s, n, err);
	if (!rc)
		rc = open_idx_in_dir(&d->labels[s], dir, n->labels[s], err);
	return rc ? rc : check_idx_labels(d, s, n, classes, err);
}

static void describe_idx(struct idx *d)
{
	uint32_t c[4] = { 0 };

	pixels_stats(&d->base, d->images[SPLIT_TRAIN].data, d->base.n_samples[SPLIT_TRAIN]);
	for (int s = 0; s < SPLIT_COUNT; s++) {
		c[2 * s] = crc32c(0, d->images[s].data, d->images[s].bytes);
		c[2 * s + 1] = crc32c(0, d->labels[s].data, d->labels[s].bytes);
	}
	snprintf(d->base.hash, sizeof(d->base.hash), "idx-%08x-%08x-%08x-%08x", c[0], c[1], c[2], c[3]);
}

static void idx_close(struct dataset *base)
{
	struct idx *d = (struct idx *)base;

	for (int s = 0; s < SPLIT_COUNT; s++) {
		idx_file_close(&d->images[s]);
		idx_file_close(&d->labels[s]);
	}
	free(d->base.path);
	free(d);
}

/* Opens a folder of IDX files. Implements dataset_ops.open. */
static int idx_open(struct dataset **ret, const struct dataset_opts *o, struct err *err)
{
	struct idx *d = calloc(1, sizeof(*d));
	struct idx_names names;
	int rc;

	if (!d || !(d->base.path = strdup(o->path))) {
		free(d);
		return err_set(err, ERR_NOMEM, "out of memory");
	}
	d->base.ops = &dataset_idx;
	d->base.dtype = DTYPE_U8;
	rc = find_idx_names(o->path, &names, err);
	for (int s = 0; s < SPLIT_COUNT && !rc; s++)
		rc = open_idx_split(d, (enum split)s, &names, o->classes, err);
	if (rc) {
		idx_close(&d->base);
		return rc;
	}
	describe_idx(d);
	*ret = &d->base;
	return 0;
}

static const void *idx_peek(const struct dataset *base, enum split s, int64_t index)
{
	const struct idx *d = (const struct idx *)base;

	return d->images[s].data + (size_t)index * pixels_count(base);
}

static int idx_read(const struct dataset *base, const struct dataset_read *r, struct err *err)
{
	const struct idx *d = (const struct idx *)base;

	(void)err;
	if (r->pixels)
		memcpy(r->pixels, idx_peek(base, r->split, r->index), pixels_count(base));
	*r->label = d->labels[r->split].data[r->index];
	return 0;
}

const struct dataset_ops dataset_idx = {
	.name = "idx",
	.expects = "train-images-idx3-ubyte[.gz] and its like (the MNIST family)",
	.probe = idx_probe,
	.open = idx_open,
	.read = idx_read,
	.close = idx_close,
	.peek = idx_peek,
};
