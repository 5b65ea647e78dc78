/* SPDX-License-Identifier: Apache-2.0 */
/* codec.c: what the decoders share: growing buffers, whole pictures, EXIF orientation. */
#include "trainer/data/pictures/codec.h"

#include <string.h>

#include "tracker/mem/mem.h"

void grow_to(void *buffer, size_t *have, size_t bytes)
{
	void **b = buffer;

	if (bytes <= *have)
		return;
	*b = mem_realloc(*b, bytes);
	*have = bytes;
}

void codec_whole_begin(struct codec_whole *p, int width, int height)
{
	p->width = width;
	p->height = height;
	grow_to(&p->pixels, &p->bytes, (size_t)width * (size_t)height * 4 + 16);
}

void codec_whole_rows(const struct codec_whole *p, const struct codec_want *w)
{
	for (int y = w->y0; y < w->y1; y++)
		w->row(w->user, p->pixels + ((size_t)y * (size_t)p->width + (size_t)w->x0) * 4);
}

static unsigned get_exif16(const uint8_t *p, bool little)
{
	return little ? (unsigned)p[1] << 8 | p[0] : (unsigned)p[0] << 8 | p[1];
}

static unsigned long get_exif32(const uint8_t *p, bool little)
{
	return little ? (unsigned long)get_exif16(p + 2, true) << 16 | get_exif16(p, true)
		      : (unsigned long)get_exif16(p, false) << 16 | get_exif16(p + 2, false);
}

int codec_exif_orientation(const uint8_t *p, size_t n)
{
	bool little;
	unsigned long at;
	unsigned count;

	if (n > 6 && !memcmp(p, "Exif\0\0", 6)) {
		p += 6;
		n -= 6;
	}
	if (n < 8)
		return 1;
	little = p[0] == 'I';
	at = get_exif32(p + 4, little);
	if (at > n - 2)
		return 1;
	count = get_exif16(p + at, little);
	for (at += 2; count-- && at + 12 <= n; at += 12)
		if (get_exif16(p + at, little) == 0x0112) {
			unsigned v = get_exif16(p + at + 8, little);

			return v >= 1 && v <= 8 ? (int)v : 1;
		}
	return 1;
}
