/* SPDX-License-Identifier: Apache-2.0 */
/* idx_make.h: writes small IDX sets for tests: pixel and label are functions of split, sample and position, so that a
 * test knows every byte without reading the files. */
#ifndef DPT_TESTS_IDX_MAKE_H
#define DPT_TESTS_IDX_MAKE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

struct idx_spec {
	const char *dir;
	int n[2]; /* train, t10k; 0: no such files */
	int height, width, channels;
	int gzip; /* 1: all files, 2: images only */
};

static inline uint8_t idx_pixel(int split, int sample, int place)
{
	uint32_t x = (uint32_t)(split * 7919 + sample) * 2654435761u + (uint32_t)place * 40503u;

	return (uint8_t)(x >> 13 ^ x >> 22);
}

static inline uint8_t idx_label(int split, int sample)
{
	return (uint8_t)((sample * 7 + split) % 10);
}

static inline const char *idx_name(int split, int labels, int gzip)
{
	static const char *const names[2][2][2] = {
		{ { "train-images-idx3-ubyte", "train-images-idx3-ubyte.gz" },
		  { "train-labels-idx1-ubyte", "train-labels-idx1-ubyte.gz" } },
		{ { "t10k-images-idx3-ubyte", "t10k-images-idx3-ubyte.gz" },
		  { "t10k-labels-idx1-ubyte", "t10k-labels-idx1-ubyte.gz" } },
	};

	return names[split][labels][gzip];
}

static inline void idx_write_file(const char *dir, const char *name, const void *bytes, size_t n, int gzip)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	unlink(path); /* some filesystems wait for the disk when a file is truncated and rewritten */
	if (gzip) {
		gzFile g = gzopen(path, "wb");

		gzwrite(g, bytes, (unsigned)n);
		gzclose(g);
	} else {
		FILE *f = fopen(path, "wb");

		fwrite(bytes, 1, n, f);
		fclose(f);
	}
}

/* Returns one file's bytes, and their number in *ret_n. The caller frees. */
static inline uint8_t *idx_bytes(const struct idx_spec *s, int split, int labels, size_t *ret_n)
{
	int ndim = labels ? 1 : s->channels > 1 ? 4 : 3, each = labels ? 1 : s->height * s->width * s->channels;
	int dims[4] = { s->n[split], s->height, s->width, s->channels };
	size_t n = 4 + 4 * (size_t)ndim + (size_t)s->n[split] * (size_t)each, at = 0;
	uint8_t *b = malloc(n);

	b[at++] = 0;
	b[at++] = 0;
	b[at++] = 8;
	b[at++] = (uint8_t)ndim;
	for (int d = 0; d < ndim; d++)
		for (int shift = 24; shift >= 0; shift -= 8)
			b[at++] = (uint8_t)(dims[d] >> shift);
	for (int i = 0; i < s->n[split]; i++)
		for (int p = 0; p < each; p++)
			b[at++] = labels ? idx_label(split, i) : idx_pixel(split, i, p);
	*ret_n = n;
	return b;
}

static inline void idx_make(const struct idx_spec *s)
{
	mkdir(s->dir, 0777);
	for (int split = 0; split < 2; split++)
		for (int labels = 0; labels < 2 && s->n[split]; labels++) {
			int gzip = s->gzip == 1 || (s->gzip == 2 && !labels);
			size_t n;
			uint8_t *b = idx_bytes(s, split, labels, &n);

			idx_write_file(s->dir, idx_name(split, labels, gzip), b, n, gzip);
			free(b);
		}
}

static inline void idx_clean(const char *dir)
{
	for (int i = 0; i < 8; i++) {
		char path[512];

		snprintf(path, sizeof(path), "%s/%s", dir, idx_name(i & 1, i >> 1 & 1, i >> 2));
		unlink(path);
	}
	rmdir(dir);
}

#endif
