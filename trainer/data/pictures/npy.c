/* SPDX-License-Identifier: Apache-2.0 */
/* npy.c: parses and builds NumPy headers, and decodes arrays of bytes as pictures. */
#include "trainer/data/pictures/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/data/pictures/codec.h"

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

/* True if an array begins there, complete or not. */
static bool npy_begins(const void *bytes, size_t n)
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

/* ---- the codec: grey or RGB arrays ---- */

struct array {
	struct npy head;
	uint8_t *row;
	size_t row_bytes;
};

static bool array_is(const struct picture_input *in)
{
	return npy_begins(in->data, in->n);
}

static void array_close(void *state)
{
	free(((struct array *)state)->row);
}

static int array_header(void *state, const struct picture_input *in, struct codec_header *ret, struct err *err)
{
	struct array *a = state;

	if (!npy_parse(in->data, in->n, &a->head) || (a->head.channels != 1 && a->head.channels != 3))
		return err_set(err, ERR_CORRUPT, "%.300s: is not a complete array of bytes, grey or RGB", in->name);
	*ret = (struct codec_header){ .width = a->head.width, .height = a->head.height, .orientation = 1 };
	return 0;
}

static void widen_to_rgbx(const struct npy *head, const uint8_t *from, uint8_t *to, int n)
{
	const int step = head->channels, next = step > 1;

	for (int x = 0; x < n; x++, from += step, to += 4) {
		to[0] = from[0];
		to[1] = from[next];
		to[2] = from[2 * next];
		to[3] = 255;
	}
}

static int array_rows(void *state, const struct picture_input *in, const struct codec_want *w, struct err *err)
{
	struct array *a = state;
	const size_t pixel = (size_t)a->head.channels, line = pixel * (size_t)a->head.width;
	const int n = w->x1 - w->x0;

	(void)err;
	grow_to(&a->row, &a->row_bytes, 4 * (size_t)n + 16);
	for (int y = w->y0; y < w->y1; y++) {
		widen_to_rgbx(&a->head, in->data + a->head.begin + (size_t)y * line + (size_t)w->x0 * pixel, a->row, n);
		w->row(w->user, a->row);
	}
	return 0;
}

const struct codec codec_array = {
	.name = "NumPy",
	.is = array_is,
	.state_bytes = sizeof(struct array),
	.close = array_close,
	.header = array_header,
	.rows = array_rows,
};
