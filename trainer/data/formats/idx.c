/* SPDX-License-Identifier: Apache-2.0 */
/* idx.c: a folder of the MNIST family: train and t10k (or test) images and labels as IDX files, plain or gzip, detected
 * by content. An IDX file has two zero bytes, the element type (only 8-bit ones are read), the number of dimensions,
 * big-endian dimensions, and the elements (http://yann.lecun.com/exdb/mnist). */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/crc32c.h"
#include "tracker/base/file.h"
#include "tracker/mem/mem.h"
#include "trainer/data/formats/formats.h"
#include "trainer/data/pictures/pixels.h"

/* ---- one file ---- */

#define IDX_DIMS_MAX 4

struct idx_file {
	int ndim;
	int64_t dim[IDX_DIMS_MAX];
	const uint8_t *data; /* the elements: product of dim bytes */
	size_t bytes;
	struct file_map file; /* mapping that data points into, */
	void *memory;	      /* or malloc'd inflated data */
};

#define TYPE_U8 0x08
#define HEADER_MAX (4 + 4 * IDX_DIMS_MAX)
#define DEFLATE_RATIO_MAX 1032 /* largest compression ratio of deflate */

struct idx_source { /* a mapped file, and for gzip its reader */
	const char *path;
	struct file_map file;
	struct gzip_file *gzip;
};

/* Parses the type and the dimensions from the n bytes at h. */
static int parse_idx_header(struct idx_file *f, const char *path, const uint8_t *h, size_t n, struct err *err)
{
	size_t bytes = 1;

	if (n < 4 || h[0] || h[1])
		return err_set(err, ERR_USAGE, "%.300s: is not an IDX file: it must begin with two zero bytes", path);
	if (h[2] != TYPE_U8)
		return err_set(err, ERR_USAGE, "%.300s: has elements of type 0x%02x: expected unsigned bytes (0x08)",
			       path, h[2]);
	if (h[3] < 1 || h[3] > IDX_DIMS_MAX)
		return err_set(err, ERR_USAGE, "%.300s: has %d dimensions: expected 1 to %d", path, h[3], IDX_DIMS_MAX);
	f->ndim = h[3];
	if (n < 4 + 4 * (size_t)f->ndim)
		return err_set(err, ERR_USAGE, "%.300s: is truncated in its header, after %zu bytes", path, n);
	for (int i = 0; i < f->ndim; i++) {
		const uint8_t *p = h + 4 + 4 * i;

		f->dim[i] = (int64_t)((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]);
		if (__builtin_mul_overflow(bytes, (size_t)f->dim[i], &bytes) || bytes > PTRDIFF_MAX)
			return err_set(err, ERR_USAGE, "%.300s: its dimensions exceed the address space", path);
	}
	f->bytes = bytes;
	return 0;
}

/* Inflates the elements and checks that their size is the header's. */
static int inflate_idx_body(struct idx_file *f, struct idx_source *s, struct err *err)
{
	uint8_t extra;
	size_t got;
	int rc;

	if (f->bytes / DEFLATE_RATIO_MAX > s->file.n)
		return err_set(err, ERR_USAGE,
			       "%.300s: its header states %zu bytes, more than %zu bytes of gzip can contain", s->path,
			       f->bytes, s->file.n);
	f->memory = mem_alloc(f->bytes);
	rc = gzip_file_read(s->gzip, f->memory, f->bytes, &got, err);
	if (!rc && got < f->bytes)
		rc = err_set(err, ERR_USAGE, "%.300s: its header states %zu bytes, found %zu", s->path, f->bytes, got);
	if (!rc) /* zlib then compares the checksum */
		rc = gzip_file_read(s->gzip, &extra, 1, &got, err);
	if (!rc && got)
		rc = err_set(err, ERR_USAGE, "%.300s: has more than the %zu bytes that its header states", s->path,
			     f->bytes);
	f->data = f->memory;
	return rc;
}

/* header_only: reads no elements. */
static int open_gzip_idx(struct idx_file *f, struct idx_source *s, bool header_only, struct err *err)
{
	uint8_t h[HEADER_MAX];
	size_t got = 0, need = 4;
	int rc = gzip_file_open(&s->gzip, s->path, err);

	if (!rc)
		rc = gzip_file_read(s->gzip, h, need, &got, err);
	if (!rc && got == need && h[3] <= IDX_DIMS_MAX) {
		need += 4 * (size_t)h[3];
		rc = gzip_file_read(s->gzip, h + 4, need - 4, &got, err);
		got += 4;
	}
	if (!rc)
		rc = parse_idx_header(f, s->path, h, got, err);
	if (!rc && !header_only)
		rc = inflate_idx_body(f, s, err);
	gzip_file_close(s->gzip);
	return rc;
}

static int open_plain_idx(struct idx_file *f, struct idx_source *s, struct err *err)
{
	size_t header;
	int rc = parse_idx_header(f, s->path, s->file.bytes, s->file.n, err);

	if (rc)
		return rc;
	header = 4 + 4 * (size_t)f->ndim;
	if (s->file.n - header != f->bytes)
		return err_set(err, ERR_USAGE, "%.300s: %s: its header states %zu bytes, found %zu", s->path,
			       s->file.n - header < f->bytes ? "truncated" : "too long", f->bytes, s->file.n - header);
	f->data = s->file.bytes + header;
	f->file = s->file;
	s->file = (struct file_map){ 0 };
	return 0;
}

static void idx_file_close(struct idx_file *f)
{
	file_map_close(&f->file);
	free(f->memory);
	memset(f, 0, sizeof(*f));
}

/* ERR_USAGE, in one line, for any defect of the file. Allocates no more than the file can fill. header_only: a gzip
 * file is neither read nor checked after its header, and has no data. */
static int idx_file_open(struct idx_file *ret, const char *path, bool header_only, struct err *err)
{
	struct idx_source s = { .path = path };
	struct idx_file f = { .ndim = 0 };
	int rc = file_map_open(&s.file, path, err);

	if (!rc && !s.file.n)
		rc = err_set(err, ERR_USAGE, "%.300s: is empty", path);
	if (rc)
		return rc;
	rc = file_refuse_pointer(path, s.file.bytes, s.file.n, err);
	if (rc) {
		file_map_close(&s.file);
		return rc;
	}
	if (s.file.n >= 2 && s.file.bytes[0] == 0x1f && s.file.bytes[1] == 0x8b)
		rc = open_gzip_idx(&f, &s, header_only, err);
	else
		rc = open_plain_idx(&f, &s, err);
	file_map_close(&s.file);
	if (rc) {
		idx_file_close(&f);
		return rc;
	}
	*ret = f;
	return 0;
}

#define SIDE_MAX 65535
#define NAME_BYTES 256

struct idx {
	struct dataset base;
	struct idx_file images[SPLIT_COUNT], labels[SPLIT_COUNT];
	struct held_out held;
	bool planned; /* as in struct dataset_opts */
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

static int open_idx_in_dir(struct idx_file *f, const struct idx *d, const char *name, bool header_only, struct err *err)
{
	char path[4096 + NAME_BYTES];

	snprintf(path, sizeof(path), "%s/%s", d->base.path, name);
	return idx_file_open(f, path, header_only, err);
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
	rc = open_idx_in_dir(&d->images[s], d, n->images[s], d->planned, err);
	if (!rc)
		rc = check_idx_images(d, s, n, err);
	if (!rc)
		rc = open_idx_in_dir(&d->labels[s], d, n->labels[s], false, err);
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

	held_out_done(&d->held);
	for (int s = 0; s < SPLIT_COUNT; s++) {
		idx_file_close(&d->images[s]);
		idx_file_close(&d->labels[s]);
	}
	free(d->base.path);
	free(d);
}

static enum data_account_fate decide_idx_fate(void *user, const char *name, char why[DATA_ACCOUNT_TEXT_BYTES])
{
	const struct idx_names *n = user;

	for (int s = 0; s < SPLIT_COUNT; s++) {
		size_t stem = stem_length(name);

		if (!strcmp(name, n->images[s]) || !strcmp(name, n->labels[s]))
			return DATA_ACCOUNT_USED;
		if (name[stem] && ((!strncmp(name, n->images[s], stem) && !n->images[s][stem]) ||
				   (!strncmp(name, n->labels[s], stem) && !n->labels[s][stem])))
			snprintf(why, DATA_ACCOUNT_TEXT_BYTES, "a compressed copy of a file that is used");
	}
	return DATA_ACCOUNT_LEFT;
}

/* Opens a folder of IDX files. Implements dataset_ops.open. */
static int idx_open(struct dataset **ret, const struct dataset_opts *o, struct err *err)
{
	struct idx *d = mem_zalloc(sizeof(*d));
	struct idx_names names;
	int rc;

	d->base.path = mem_strdup(o->path);
	d->base.ops = &dataset_idx;
	d->base.dtype = DTYPE_U8;
	d->planned = o->planned;
	rc = find_idx_names(o->path, &names, err);
	for (int s = 0; s < SPLIT_COUNT && !rc; s++)
		rc = open_idx_split(d, (enum split)s, &names, o->classes, err);
	if (!rc && !d->planned)
		describe_idx(d);
	if (!rc)
		rc = held_out_make(&d->held, &d->base, o->val_share, err);
	if (rc) {
		idx_close(&d->base);
		return rc;
	}
	data_account_walk(&d->base.account, o->path, &(struct data_account_rule){ decide_idx_fate, &names });
	*ret = &d->base;
	return 0;
}

static const void *idx_peek(const struct dataset *base, enum split s, int64_t index)
{
	const struct idx *d = (const struct idx *)base;

	s = held_out_find(&d->held, s, &index);
	return d->images[s].data + (size_t)index * pixels_count(base);
}

static int32_t idx_label(const struct dataset *base, enum split split, int64_t index)
{
	const struct idx *d = (const struct idx *)base;

	split = held_out_find(&d->held, split, &index);
	return d->labels[split].data[index];
}

static int idx_read(const struct dataset *base, const struct dataset_read *r, struct err *err)
{
	(void)err;
	if (r->pixels)
		memcpy(r->pixels, idx_peek(base, r->split, r->index), pixels_count(base));
	*r->label = idx_label(base, r->split, r->index);
	return 0;
}

const struct dataset_ops dataset_idx = {
	.name = "idx",
	.expects = "train-images-idx3-ubyte[.gz] (MNIST)",
	.probe = idx_probe,
	.open = idx_open,
	.read = idx_read,
	.close = idx_close,
	.peek = idx_peek,
	.label = idx_label,
};
