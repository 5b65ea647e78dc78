/* tar.c: POSIX.1-1988 ustar headers: 512-byte blocks, sizes in octal. */
#include "trainer/data/formats/tar.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#define BLOCK 512

struct tar {
	gzFile file;
	char *path;
	uint64_t left; /* bytes of the current entry, and its padding, that were not read */
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

static int damaged(const struct tar *t, const char *what, struct err *err)
{
	return err_set(err, ERR_USAGE, "%.300s: damaged archive: %s", t->path, what);
}

int tar_read(struct tar *t, void *to, size_t n, struct err *err)
{
	char *at = to;

	if (n > t->left)
		return damaged(t, "a file is shorter than its header says", err);
	t->left -= n;
	while (n) {
		int got = gzread(t->file, at, n > 1 << 20 ? 1 << 20 : (unsigned)n);

		if (got <= 0)
			return damaged(t, "it ends too early", err);
		at += got;
		n -= (size_t)got;
	}
	return 0;
}

static int skip(struct tar *t, struct err *err)
{
	char block[1 << 14];
	int rc = 0;

	while (!rc && t->left)
		rc = tar_read(t, block, t->left < sizeof(block) ? (size_t)t->left : sizeof(block), err);
	return rc;
}

/* Octal digits up to a space or NUL; false when something else stands there. */
static bool octal(const char *text, size_t n, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i = 0;

	while (i < n && text[i] == ' ')
		i++;
	for (; i < n && text[i] && text[i] != ' '; i++) {
		if (text[i] < '0' || text[i] > '7' || v >> 60)
			return false;
		v = v * 8 + (uint64_t)(text[i] - '0');
	}
	*ret = v;
	return true;
}

/* The header's own checksum: all its bytes, the checksum's counted as spaces. */
static bool sum_fits(const char *block)
{
	uint64_t sum = 0, said;

	for (int i = 0; i < BLOCK; i++)
		sum += i >= 148 && i < 156 ? ' ' : (unsigned char)block[i];
	return octal(block + 148, 8, &said) && sum == said;
}

static bool all_zero(const char *block)
{
	for (int i = 0; i < BLOCK; i++)
		if (block[i])
			return false;
	return true;
}

int tar_next(struct tar *t, struct tar_entry *ret, struct err *err)
{
	char block[BLOCK];
	uint64_t bytes;

	for (;;) {
		int rc = skip(t, err);

		if (rc)
			return rc;
		t->left = BLOCK;
		rc = tar_read(t, block, BLOCK, err);
		if (rc)
			return rc;
		if (all_zero(block))
			return 0;
		if (!sum_fits(block) || !octal(block + 124, 12, &bytes) || bytes > (uint64_t)1 << 50)
			return damaged(t, "a header is wrong", err);
		t->left = (bytes + BLOCK - 1) / BLOCK * BLOCK;
		if (block[156] && block[156] != '0')
			continue;
		snprintf(ret->name, sizeof(ret->name), "%.155s%s%.100s", block + 345, block[345] ? "/" : "", block);
		ret->bytes = bytes;
		return 1;
	}
}
