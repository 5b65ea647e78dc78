/* tar.c: reads header by header through zlib. */
#include "trainer/data/formats/tar.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "trainer/data/container/tar_walk.h"

struct tar {
	gzFile file;
	char *path;
	uint64_t left; /* unread bytes of the entry, with its padding */
};

int tar_open(struct tar **ret, const char *path, struct err *err)
{
	struct tar *t = calloc(1, sizeof(*t));

	if (!t || !(t->path = strdup(path))) {
		free(t);
		return err_set(err, ERR_NOMEM, "out of memory");
	}
	t->file = gzopen(path, "rbe");
	if (!t->file) {
		tar_close(t);
		return err_set(err, ERR_USAGE, "%.300s: %s", path, strerror(errno));
	}
	gzbuffer(t->file, 1 << 17);
	*ret = t;
	return 0;
}

void tar_close(struct tar *t)
{
	if (!t)
		return;
	if (t->file)
		gzclose(t->file);
	free(t->path);
	free(t);
}

static int fail_damaged_tar(const struct tar *t, const char *what, struct err *err)
{
	return err_set(err, ERR_USAGE, "%.300s: damaged archive: %s", t->path, what);
}

int tar_read(struct tar *t, void *to, size_t n, struct err *err)
{
	char *at = to;

	if (n > t->left)
		return fail_damaged_tar(t, "a file is shorter than its header says", err);
	t->left -= n;
	while (n) {
		int got = gzread(t->file, at, n > 1 << 20 ? 1 << 20 : (unsigned)n);

		if (got <= 0)
			return fail_damaged_tar(t, "it is truncated", err);
		at += got;
		n -= (size_t)got;
	}
	return 0;
}

static int skip_tar_entry(struct tar *t, struct err *err)
{
	char block[1 << 14];
	int rc = 0;

	while (!rc && t->left)
		rc = tar_read(t, block, t->left < sizeof(block) ? (size_t)t->left : sizeof(block), err);
	return rc;
}

int tar_next(struct tar *t, struct tar_entry *ret, struct err *err)
{
	char block[TAR_BLOCK];
	struct tar_block b;

	for (;;) {
		int rc = skip_tar_entry(t, err);

		if (rc)
			return rc;
		t->left = TAR_BLOCK;
		rc = tar_read(t, block, TAR_BLOCK, err);
		if (rc)
			return rc;
		tar_block_parse(block, &b);
		if (b.kind == TAR_END)
			return 0;
		if (b.kind == TAR_DAMAGED)
			return fail_damaged_tar(t, "a header is invalid", err);
		t->left = tar_block_padded(b.bytes);
		if (b.kind != TAR_FILE)
			continue;
		snprintf(ret->name, sizeof(ret->name), "%s", b.name);
		ret->bytes = b.bytes;
		return 1;
	}
}
