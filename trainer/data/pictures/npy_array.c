/* npy_array.c: pictures stored decoded: NumPy arrays of bytes, grey or RGB (npy.h). */
#include <stdlib.h>
#include <string.h>

#include "trainer/data/pictures/codec.h"
#include "trainer/data/pictures/grow.h"
#include "trainer/data/pictures/npy.h"

struct array {
	struct npy head;
	uint8_t *row;
	size_t row_bytes;
};

static bool array_is(const struct codec_input *in)
{
	return npy_begins(in->data, in->n);
}

static int array_state(void **ret, struct err *err)
{
	*ret = calloc(1, sizeof(struct array));
	return *ret ? 0 : err_set(err, ERR_NOMEM, "out of memory: picture decoder");
}

static void array_close(void *state)
{
	struct array *a = state;

	if (a)
		free(a->row);
	free(a);
}

static int array_header(void *state, const struct codec_input *in, struct codec_header *ret, struct err *err)
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

static int array_rows(void *state, const struct codec_input *in, const struct codec_want *w, struct err *err)
{
	struct array *a = state;
	const size_t pixel = (size_t)a->head.channels, line = pixel * (size_t)a->head.width;
	const int n = w->x1 - w->x0;
	int rc = grow_to(&a->row, &a->row_bytes, 4 * (size_t)n + 16, in->name, err);

	for (int y = w->y0; !rc && y < w->y1; y++) {
		widen_to_rgbx(&a->head, in->data + a->head.begin + (size_t)y * line + (size_t)w->x0 * pixel, a->row, n);
		w->row(w->user, a->row);
	}
	return rc;
}

const struct codec codec_array = {
	.name = "NumPy",
	.is = array_is,
	.open = array_state,
	.close = array_close,
	.header = array_header,
	.rows = array_rows,
};
