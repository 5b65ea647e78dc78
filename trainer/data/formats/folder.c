/* SPDX-License-Identifier: Apache-2.0 */
/* folder.c: folders of images by class, decoded on demand. An unreadable file is reported once and counted; the
 * loader replaces its sample. */
#include "trainer/data/formats/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/crc32c.h"
#include "tracker/mem/mem.h"
#include "trainer/data/formats/formats.h"
#include "trainer/data/formats/image_set.h"

#define FAR_STATS 4096 /* round trips to a network disk that naming the set may cost */

struct folder_set {
	struct image_set set;
	struct folder_files files;
};

static void folder_close(struct dataset *base)
{
	struct folder_set *d = (struct folder_set *)base;

	folder_files_done(&d->files);
	image_set_done(&d->set);
	free(d);
}

/* Notes, in one notice, the classes of training that have no validation image. */
static void note_missing_classes(struct folder_set *d)
{
	const struct folder_files *f = &d->files;
	bool *seen = mem_array((size_t)f->n_classes, sizeof(*seen));
	int missing = 0, first = 0;
	char text[512];

	for (int64_t i = 0; i < f->split[SPLIT_VAL].n; i++)
		seen[f->split[SPLIT_VAL].file[i].label] = true;
	for (int i = f->n_classes - 1; i >= 0; i--)
		if (!seen[i]) {
			missing++;
			first = i;
		}
	free(seen);
	if (!missing || !f->split[SPLIT_VAL].n)
		return;
	snprintf(text, sizeof(text), "%.300s: no validation images of %d of %d classes (%.60s)", d->set.base.path,
		 missing, f->n_classes, f->classes[first]);
	image_set_note(&d->set, text);
}

/* Hashes paths and labels, but no pixels: reading every image could take longer than the training. */
static void hash_folder_files(struct folder_set *d)
{
	uint32_t c[2] = { 0 };

	for (int s = 0; s < SPLIT_COUNT; s++)
		for (int64_t i = 0; i < d->files.split[s].n; i++) {
			const char *name = folder_name(&d->files, (enum split)s, i);
			int32_t label = d->files.split[s].file[i].label;

			c[s] = crc32c(crc32c(c[s], name, strlen(name)), &label, sizeof(label));
		}
	snprintf(d->set.base.hash, sizeof(d->set.base.hash), "folder-%08x-%08x", c[SPLIT_TRAIN], c[SPLIT_VAL]);
}

static int describe_folder(struct folder_set *d, const struct dataset_opts *o, struct err *err)
{
	struct dataset *b = &d->set.base;
	int rc;

	b->ops = &dataset_folder;
	b->class_names = (const char *const *)d->files.classes;
	b->n_class_names = d->files.n_classes;
	for (int s = 0; s < SPLIT_COUNT; s++)
		b->n_samples[s] = d->files.split[s].n;
	rc = image_set_describe(&d->set, o, d->files.n_classes, "class folders", err);
	if (rc)
		return rc;
	hash_folder_files(d);
	note_missing_classes(d);
	return 0;
}

/* Opens a folder of images: lists both splits, refuses pointers of Git LFS, reads sizes and classes. */
static int run_folder_open(struct dataset **ret, const struct dataset_opts *o, struct err *err)
{
	struct folder_set *d = mem_zalloc(sizeof(*d));
	int rc;

	image_set_init(&d->set, o->path);
	rc = folder_scan(&d->files,
			 &(struct folder_scan_opts){ o->path, o->val_share, &d->set.base.account, o->any_kind }, err);
	if (!rc)
		rc = describe_folder(d, o, err);
	if (rc) {
		folder_close(&d->set.base);
		return rc;
	}
	*ret = &d->set.base;
	return 0;
}

static void write_picture_path(const struct folder_set *d, enum split split, int64_t i, char ret[PATH_MAX])
{
	snprintf(ret, PATH_MAX, "%.2000s/%.2000s", d->set.base.path, folder_name(&d->files, split, i));
}

static int folder_read(const struct dataset *base, const struct dataset_read *r, struct err *err)
{
	struct folder_set *d = (struct folder_set *)base;
	struct picture_size size;
	struct err why = ERR_INIT;
	char path[PATH_MAX];

	*r->label = d->files.split[r->split].file[r->index].label;
	write_picture_path(d, r->split, r->index, path);
	return picture_load(r->hand, path, &size, &why) || image_set_render(&d->set, r, r->hand, size, &why)
		       ? image_set_failed(&d->set, r, &why, err)
		       : 0;
}

static int open_folder_picture(const struct folder_set *d, const struct dataset_read *r, char path[PATH_MAX])
{
	write_picture_path(d, r->split, r->index, path);
	return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* does not wait for a pipe */
}

static int read_regular_file(int fd, const char *path, struct buf *ret, struct err *err)
{
	struct stat st;
	ssize_t got;
	char *room;

	if (fstat(fd, &st))
		return err_set(err, ERR_USAGE, "%.300s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_USAGE, "%.300s: is not a regular file", path);
	buf_reset(ret);
	room = buf_reserve(ret, (size_t)st.st_size);
	if (!room)
		return err_set(err, ERR_USAGE, "%.300s: is too large", path);
	got = file_read(fd, 0, room, (size_t)st.st_size);
	if (got < 0)
		return err_set(err, ERR_USAGE, "%.300s: %s", path, strerror(errno));
	ret->len = (size_t)got;
	return 0;
}

static int folder_file(const struct dataset *base, const struct dataset_read *r, struct dataset_file *ret,
		       struct err *err)
{
	const struct folder_set *d = (const struct folder_set *)base;
	char path[PATH_MAX];
	int fd, rc;

	ret->label = d->files.split[r->split].file[r->index].label;
	fd = open_folder_picture(d, r, path);
	if (fd < 0)
		return err_set(err, ERR_USAGE, "%.300s: %s", path, strerror(errno));
	rc = read_regular_file(fd, path, &ret->bytes, err);
	close(fd);
	if (!rc)
		ret->ending = picture_ending(ret->bytes.data, ret->bytes.len);
	return rc;
}

/* Not on a network disk, where opening a file in advance costs its own round trip. */
static bool folder_ahead(const struct dataset *base, const struct dataset_read *r)
{
	char path[PATH_MAX];
	int fd = base->far ? -1 : open_folder_picture((const struct folder_set *)base, r, path);

	if (fd < 0)
		return true;
	posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
	close(fd);
	return true;
}

static void folder_where(const struct dataset *base, enum split split, int64_t index, char *ret, size_t bytes)
{
	snprintf(ret, bytes, "%s", folder_name(&((const struct folder_set *)base)->files, split, index));
}

static uint64_t picture_bytes(const struct dataset *base, enum split split, int64_t i)
{
	char path[PATH_MAX];
	struct stat st;

	write_picture_path((const struct folder_set *)base, split, i, path);
	return stat(path, &st) ? 0 : (uint64_t)st.st_size;
}

/* Hashes names, labels and sizes; on a network disk the sizes of files at equal distances. */
static void folder_sum(const struct dataset *base, enum split split, struct sha256 *to)
{
	const struct folder_set *d = (const struct folder_set *)base;
	const int64_t n = base->n_samples[split], step = base->far ? n / FAR_STATS + 1 : 1;

	for (int64_t i = 0; i < n; i++) {
		const char *name = folder_name(&d->files, split, i);
		const int32_t label = d->files.split[split].file[i].label;
		const uint64_t facts[2] = { (uint64_t)label, i % step ? 0 : picture_bytes(base, split, i) };

		sha256_add(to, name, strlen(name) + 1);
		sha256_add(to, facts, sizeof(facts));
	}
}

/* The size stays unknown on a network disk, where each stat costs a round trip. */
static void folder_facts(const struct dataset *base, enum split split, struct dataset_facts *ret)
{
	for (int64_t i = 0; !base->far && i < base->n_samples[split]; i++)
		ret->bytes += picture_bytes(base, split, i);
}

static void *new_folder_scratch(void)
{
	return picture_new();
}

static void free_folder_scratch(void *hand)
{
	picture_free(hand);
}

const struct dataset_ops dataset_folder = {
	.name = "folder",
	.expects = "train/CLASS/*.jpg or CLASS/*.jpg (images)",
	.probe = folder_probe,
	.open = run_folder_open,
	.read = folder_read,
	.close = folder_close,
	.hand_new = new_folder_scratch,
	.hand_free = free_folder_scratch,
	.notice = image_set_notice,
	.broken = image_set_broken,
	.file = folder_file,
	.ahead = folder_ahead,
	.facts = folder_facts,
	.sum = folder_sum,
	.where = folder_where,
};
