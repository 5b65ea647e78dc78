/* SPDX-License-Identifier: Apache-2.0 */
/* cifar.c: CIFAR-10 and CIFAR-100 in their binary form (https://www.cs.toronto.edu/~kriz/cifar.html). A record is
 * one label byte (CIFAR-100: a coarse label, then the fine label, which is used) and 3072 bytes of pixels in planes.
 * The files, or the downloaded gzip archive, are read into memory once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/crc32c.h"
#include "tracker/base/file.h"
#include "tracker/mem/mem.h"
#include "trainer/data/container/tar_walk.h"
#include "trainer/data/formats/formats.h"
#include "trainer/data/formats/image_set.h"
#include "trainer/data/pictures/pixels.h"
#include "trainer/data/tokenizer/token_file.h"

#define SIDE 32
#define PLANE (SIDE * SIDE)
#define IMAGE (3 * PLANE)
#define FILE_RECORDS_MAX 50000 /* per file, as published */
#define FILES_MAX 6
#define ARCHIVE_BYTES_MAX ((size_t)1 << 30)
#define READ_BYTES ((size_t)1 << 20)

/* A published set: its files in order, the training files first. */
struct cifar_kind {
	const char *name, *archive;
	int classes, label_bytes;
	int n_train;
	const char *file[FILES_MAX];
};

static const struct cifar_kind kinds[] = {
	{ "cifar-10",
	  "cifar-10-binary.tar.gz",
	  10,
	  1,
	  5,
	  { "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin",
	    "test_batch.bin" } },
	{ "cifar-100", "cifar-100-binary.tar.gz", 100, 2, 1, { "train.bin", "test.bin" } },
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct cifar {
	struct dataset base;
	const struct cifar_kind *kind;
	uint8_t *images[SPLIT_COUNT]; /* HWC */
	uint8_t *labels[SPLIT_COUNT];
	struct held_out held;
};

static bool has_regular_file(const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	return snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) && !stat(path, &st) &&
	       S_ISREG(st.st_mode);
}

/* Detects the set in a folder by any of its files or its archive. */
static const struct cifar_kind *find_cifar_kind(const char *path)
{
	for (size_t k = 0; k < N_KINDS; k++) {
		if (has_regular_file(path, kinds[k].archive))
			return &kinds[k];
		for (int i = 0; i < FILES_MAX && kinds[k].file[i]; i++)
			if (has_regular_file(path, kinds[k].file[i]))
				return &kinds[k];
	}
	return NULL;
}

static bool cifar_probe(const char *path)
{
	const struct cifar_kind *kind = find_cifar_kind(path);

	/* a train.bin may also hold tokens */
	return kind && !(kind == &kinds[1] && token_set_probe(path, split_name(SPLIT_TRAIN)));
}

static void cifar_close(struct dataset *base)
{
	struct cifar *d = (struct cifar *)base;

	held_out_done(&d->held);
	for (int s = 0; s < SPLIT_COUNT; s++) {
		free(d->images[s]);
		free(d->labels[s]);
	}
	free(d->base.path);
	free(d);
}

/* Appends the records of one file's bytes to a split. */
static void append_cifar_records(struct cifar *d, enum split s, const uint8_t *from, int64_t records)
{
	int64_t have = d->base.n_samples[s];
	int label_bytes = d->kind->label_bytes;

	d->images[s] = mem_realloc(d->images[s], (size_t)(have + records) * IMAGE);
	d->labels[s] = mem_realloc(d->labels[s], (size_t)(have + records));
	for (int64_t i = 0; i < records; i++, from += label_bytes + IMAGE) {
		uint8_t *to = d->images[s] + (size_t)(have + i) * IMAGE;

		d->labels[s][have + i] = from[label_bytes - 1];
		for (int p = 0; p < PLANE; p++)
			for (int c = 0; c < 3; c++)
				to[3 * p + c] = from[label_bytes + c * PLANE + p];
	}
	d->base.n_samples[s] += records;
}

static int append_cifar_file(struct cifar *d, int file, const uint8_t *bytes, size_t n, struct err *err)
{
	size_t record = (size_t)d->kind->label_bytes + IMAGE;

	if (file_refuse_pointer(d->kind->file[file], bytes, n, err))
		return ERR_USAGE;
	if (!n || n % record || n / record > FILE_RECORDS_MAX)
		return err_set(err, ERR_USAGE, "%.200s/%s: %zu bytes: expected 1 to %d records of %zu bytes",
			       d->base.path, d->kind->file[file], n, FILE_RECORDS_MAX, record);
	append_cifar_records(d, file < d->kind->n_train ? SPLIT_TRAIN : SPLIT_VAL, bytes, (int64_t)(n / record));
	return 0;
}

/* The contents of the files before their records are appended. */
struct cifar_files {
	struct file_map map[FILES_MAX]; /* of single files */
	struct buf archive;		/* or of all: the unpacked archive */
	const uint8_t *bytes[FILES_MAX]; /* in either; NULL: missing */
	size_t n[FILES_MAX];
};

static int map_cifar_files(struct cifar *d, struct cifar_files *files, struct err *err)
{
	for (int i = 0; i < FILES_MAX && d->kind->file[i]; i++) {
		char path[PATH_MAX];

		/* append_all_cifar_files reports missing files */
		if (!has_regular_file(d->base.path, d->kind->file[i]))
			continue;
		snprintf(path, sizeof(path), "%.2000s/%s", d->base.path, d->kind->file[i]);
		if (file_map_open(&files->map[i], path, err))
			return ERR_USAGE;
		files->bytes[i] = files->map[i].n ? files->map[i].bytes : (const uint8_t *)"";
		files->n[i] = files->map[i].n;
	}
	return 0;
}

static int index_cifar_file(const struct cifar_kind *k, const char *name)
{
	const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;

	for (int i = 0; i < FILES_MAX && k->file[i]; i++)
		if (!strcmp(base, k->file[i]))
			return i;
	return -1;
}

static int unpack_cifar_archive(struct buf *ret, const char *path, struct err *err)
{
	struct gzip_file *g = NULL;
	size_t got = 1;
	int rc = image_set_check_pointer(path, err);

	if (!rc)
		rc = gzip_file_open(&g, path, err);
	while (!rc && got) {
		char *to = buf_reserve(ret, READ_BYTES);

		if (!to)
			rc = err_set(err, ERR_USAGE, "%.300s: damaged archive: larger than published ones", path);
		else
			rc = gzip_file_read(g, to, READ_BYTES, &got, err);
		ret->len += rc ? 0 : got;
	}
	gzip_file_close(g);
	return rc;
}

static int read_archive_bytes(void *user, uint64_t at, void *to, size_t n, struct err *err)
{
	const struct buf *archive = user;

	(void)err;
	memcpy(to, archive->data + at, n);
	return 0;
}

/* Finds the files in the archive, where their order varies. */
static int find_archive_files(const struct cifar *d, struct cifar_files *files, const char *path, struct err *err)
{
	struct byte_source source = { files->archive.len, read_archive_bytes, &files->archive, path };
	struct tar_walk_entry e;
	struct tar_walk *w = tar_walk_new(&source);
	int rc, i;

	while ((rc = tar_walk_next(w, &e, err)) > 0) {
		if (!e.name) {
			rc = err_set(err, ERR_USAGE, "%.300s: damaged archive: a header is invalid, or it is truncated",
				     path);
			break;
		}
		i = index_cifar_file(d->kind, e.name);
		if (i < 0)
			continue;
		files->bytes[i] = (const uint8_t *)files->archive.data + e.offset;
		files->n[i] = (size_t)e.bytes;
	}
	tar_walk_free(w);
	return rc;
}

static int read_cifar_archive(struct cifar *d, struct cifar_files *files, struct err *err)
{
	char path[PATH_MAX];
	int rc;

	snprintf(path, sizeof(path), "%.2000s/%s", d->base.path, d->kind->archive);
	rc = unpack_cifar_archive(&files->archive, path, err);
	return rc ? rc : find_archive_files(d, files, path, err);
}

/* Appends the files in the published order. The test file is optional. */
static int append_all_cifar_files(struct cifar *d, const struct cifar_files *files, struct err *err)
{
	for (int i = 0; i < FILES_MAX && d->kind->file[i]; i++) {
		int rc;

		if (!files->bytes[i] && i >= d->kind->n_train)
			continue;
		if (!files->bytes[i])
			return err_set(err, ERR_USAGE, "%.300s: %s is missing (%s in its binary version)", d->base.path,
				       d->kind->file[i], d->kind->name);
		rc = append_cifar_file(d, i, files->bytes[i], files->n[i], err);
		if (rc)
			return rc;
	}
	return 0;
}

static int check_cifar_labels(const struct cifar *d, struct err *err)
{
	for (int s = 0; s < SPLIT_COUNT; s++)
		for (int64_t i = 0; i < d->base.n_samples[s]; i++)
			if (d->labels[s][i] >= d->base.classes)
				return err_set(err, ERR_USAGE,
					       "%.200s: label %d of %s sample %lld: must be below %d classes",
					       d->base.path, d->labels[s][i], split_name((enum split)s), (long long)i,
					       d->base.classes);
	return 0;
}

static void describe_cifar(struct cifar *d)
{
	uint32_t c[4];

	for (int s = 0; s < SPLIT_COUNT; s++) {
		size_t n = (size_t)d->base.n_samples[s];

		c[2 * s] = crc32c(0, d->images[s], n * IMAGE);
		c[2 * s + 1] = crc32c(0, d->labels[s], n);
	}
	pixels_stats(&d->base, d->images[SPLIT_TRAIN], d->base.n_samples[SPLIT_TRAIN]);
	snprintf(d->base.hash, sizeof(d->base.hash), "cifar-%08x-%08x-%08x-%08x", c[0], c[1], c[2], c[3]);
}

static bool reads_cifar_archive(const struct cifar *d)
{
	return has_regular_file(d->base.path, d->kind->archive) && !has_regular_file(d->base.path, d->kind->file[0]);
}

static enum data_account_fate decide_cifar_fate(void *user, const char *name, char why[DATA_ACCOUNT_TEXT_BYTES])
{
	const struct cifar *d = user;
	const bool archive = reads_cifar_archive(d);

	if (!strcmp(name, d->kind->archive)) {
		snprintf(why, DATA_ACCOUNT_TEXT_BYTES, "the archive of files that are used");
		return archive ? DATA_ACCOUNT_USED : DATA_ACCOUNT_LEFT;
	}
	for (int i = 0; !archive && i < FILES_MAX && d->kind->file[i]; i++)
		if (!strcmp(name, d->kind->file[i]))
			return DATA_ACCOUNT_USED;
	return DATA_ACCOUNT_LEFT;
}

static int read_cifar_set(struct cifar *d, const struct dataset_opts *o, struct err *err)
{
	struct cifar_files files = { .n = { 0 } };
	int rc;

	buf_init(&files.archive, ARCHIVE_BYTES_MAX);
	rc = reads_cifar_archive(d) ? read_cifar_archive(d, &files, err) : map_cifar_files(d, &files, err);
	if (!rc)
		rc = append_all_cifar_files(d, &files, err);
	for (int i = 0; i < FILES_MAX; i++)
		file_map_close(&files.map[i]);
	buf_done(&files.archive);
	d->base.classes = o->classes ? o->classes : d->kind->classes;
	return rc ? rc : check_cifar_labels(d, err);
}

/* Reads a whole set into memory. Implements dataset_ops.open. */
static int cifar_open(struct dataset **ret, const struct dataset_opts *o, struct err *err)
{
	struct cifar *d = mem_zalloc(sizeof(*d));
	int rc;

	d->base.path = mem_strdup(o->path);
	d->kind = find_cifar_kind(o->path);
	d->base.ops = &dataset_cifar;
	d->base.dtype = DTYPE_U8;
	d->base.height = d->base.width = SIDE;
	d->base.channels = 3;
	rc = d->kind ? read_cifar_set(d, o, err)
		     : err_set(err, ERR_USAGE, "%.300s: the files have disappeared", o->path);
	if (!rc)
		describe_cifar(d);
	if (!rc)
		rc = held_out_make(&d->held, &d->base, o->val_share, err);
	if (rc) {
		cifar_close(&d->base);
		return rc;
	}
	data_account_walk(&d->base.account, o->path, &(struct data_account_rule){ decide_cifar_fate, d });
	*ret = &d->base;
	return 0;
}

static const void *cifar_peek(const struct dataset *base, enum split s, int64_t index)
{
	const struct cifar *d = (const struct cifar *)base;

	s = held_out_find(&d->held, s, &index);
	return d->images[s] + (size_t)index * IMAGE;
}

static int32_t cifar_label(const struct dataset *base, enum split split, int64_t index)
{
	const struct cifar *d = (const struct cifar *)base;

	split = held_out_find(&d->held, split, &index);
	return d->labels[split][index];
}

static int cifar_read(const struct dataset *base, const struct dataset_read *r, struct err *err)
{
	(void)err;
	if (r->pixels)
		memcpy(r->pixels, cifar_peek(base, r->split, r->index), IMAGE);
	*r->label = cifar_label(base, r->split, r->index);
	return 0;
}

const struct dataset_ops dataset_cifar = {
	.name = "cifar",
	.expects = "data_batch_1.bin or cifar-10-binary.tar.gz (CIFAR)",
	.probe = cifar_probe,
	.open = cifar_open,
	.read = cifar_read,
	.close = cifar_close,
	.peek = cifar_peek,
	.label = cifar_label,
};
