/* npy.c: parses and builds NumPy headers. */
#include "trainer/data/pictures/npy.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "\x93NUMPY"
#define HEADER_MAX (NPY_HEAD_MAX - 12)
#define SIDE_MAX 65536

/* Parses the numbers of "(28, 28, 3)" or "(28, 28)". */
static bool parse_npy_shape(const char *text, struct npy *a)
{
	const char *at = strstr(text, "'shape':");
	int n = 0, end = 0;

	at = at ? strchr(at, '(') : NULL;
	if (!at)
		return false;
	a->channels = 1;
	n = sscanf(at, "(%6d, %6d, %2d)%n", &a->height, &a->width, &a->channels, &end);
	if (n < 3 || !end)
		n = sscanf(at, "(%6d, %6d)%n", &a->height, &a->width, &end);
	return end && n >= 2 && a->height > 0 && a->width > 0 && a->channels > 0 && a->height <= SIDE_MAX &&
		a->width <= SIDE_MAX;
}

bool npy_begins(const void *bytes, size_t n)
{
	return n >= 12 && !memcmp(bytes, MAGIC, 6);
}

bool npy_parse(const void *bytes, size_t n, struct npy *ret)
{
	const unsigned char *b = bytes;
	struct npy a = { .begin = 10 };
	char text[HEADER_MAX];
	size_t length;

	if (!npy_begins(bytes, n) || b[6] < 1 || b[6] > 3)
		return false;
	length = b[8] | (size_t)b[9] << 8;
	if (b[6] > 1) {
		length |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
		a.begin = 12;
	}
	if (length >= HEADER_MAX || length > n - a.begin)
		return false;
	memcpy(text, b + a.begin, length);
	text[length] = '\0';
	a.begin += length;
	if ((!strstr(text, "'descr': '|u1'") && !strstr(text, "'descr': 'u1'")) ||
	    !strstr(text, "'fortran_order': False") || !parse_npy_shape(text, &a) ||
	    n - a.begin != (size_t)a.height * (size_t)a.width * (size_t)a.channels)
		return false;
	*ret = a;
	return true;
}

void npy_head(const struct npy *a, char ret[NPY_HEAD_BYTES])
{
	char shape[40], text[NPY_HEAD_BYTES];
	int n;

	if (a->channels == 1)
		snprintf(shape, sizeof(shape), "(%d, %d)", a->height, a->width);
	else
		snprintf(shape, sizeof(shape), "(%d, %d, %d)", a->height, a->width, a->channels);
	memset(ret, ' ', NPY_HEAD_BYTES);
	memcpy(ret, MAGIC "\x01\x00", 8);
	ret[8] = NPY_HEAD_BYTES - 10;
	ret[9] = 0;
	n = snprintf(text, sizeof(text), "{'descr': '|u1', 'fortran_order': False, 'shape': %s, }", shape);
	memcpy(ret + 10, text, (size_t)n < NPY_HEAD_BYTES - 11 ? (size_t)n : NPY_HEAD_BYTES - 11);
	ret[NPY_HEAD_BYTES - 1] = '\n';
}
