/* SPDX-License-Identifier: Apache-2.0 */
/* gif.c: the first frame of a GIF through giflib. Pixels outside of the frame have the transparent colour, or colour
 * 0. */
#include <stdlib.h>
#include <string.h>

#include <gif_lib.h>

#include "trainer/data/pictures/codec.h"

struct gif {
	struct codec_whole whole;
	const struct picture_input *in;
	size_t at;
	uint8_t *line;
	size_t line_bytes;
	int width, height;
};

static int gif_state(void **ret, struct err *err)
{
	*ret = calloc(1, sizeof(struct gif));
	return *ret ? 0 : err_nomem(err, "GIF decoder");
}

static void gif_close(void *state)
{
	struct gif *s = state;

	if (s) {
		free(s->whole.pixels);
		free(s->line);
	}
	free(s);
}

static bool gif_is(const struct picture_input *in)
{
	return in->n > 13 && (!memcmp(in->data, "GIF87a", 6) || !memcmp(in->data, "GIF89a", 6));
}

static int gif_header(void *state, const struct picture_input *in, struct codec_header *ret, struct err *err)
{
	struct gif *s = state;

	(void)err;
	s->width = in->data[6] | in->data[7] << 8;
	s->height = in->data[8] | in->data[9] << 8;
	*ret = (struct codec_header){ .width = s->width, .height = s->height, .orientation = 1 };
	return 0;
}

static int read_gif_input(GifFileType *f, GifByteType *to, int n)
{
	struct gif *s = f->UserData;
	size_t left = s->in->n - s->at, got = (size_t)n < left ? (size_t)n : left;

	memcpy(to, s->in->data + s->at, got);
	s->at += got;
	return (int)got;
}

/* Finds the first frame; *ret_transparent: its transparent colour, or NO_TRANSPARENT_COLOR. */
static bool find_first_frame(GifFileType *f, int *ret_transparent)
{
	GifRecordType type;
	GifByteType *extension;
	GraphicsControlBlock control;
	int code;

	*ret_transparent = NO_TRANSPARENT_COLOR;
	while (DGifGetRecordType(f, &type) == GIF_OK && type != TERMINATE_RECORD_TYPE) {
		if (type == IMAGE_DESC_RECORD_TYPE)
			return DGifGetImageDesc(f) == GIF_OK;
		if (type != EXTENSION_RECORD_TYPE)
			continue;
		if (DGifGetExtension(f, &code, &extension) != GIF_OK)
			return false;
		while (extension) {
			if (code == GRAPHICS_EXT_FUNC_CODE &&
			    DGifExtensionToGCB(extension[0], extension + 1, &control) == GIF_OK)
				*ret_transparent = control.TransparentColor;
			if (DGifGetExtensionNext(f, &extension) != GIF_OK)
				return false;
		}
	}
	return false;
}

static void put_gif_color(const ColorMapObject *map, int index, uint8_t *to)
{
	const GifColorType black = { 0, 0, 0 }, *c = map && index < map->ColorCount ? &map->Colors[index] : &black;

	memcpy(to, (uint8_t[]){ c->Red, c->Green, c->Blue, 255 }, 4);
}

/* Decodes the lines of the frame, in four passes if it is interlaced. */
static bool decode_gif_lines(struct gif *s, GifFileType *f, const ColorMapObject *map)
{
	static const int first[] = { 0, 4, 2, 1 }, step[] = { 8, 8, 4, 2 };
	const GifImageDesc *d = &f->Image;

	for (int pass = 0; pass < (d->Interlace ? 4 : 1); pass++)
		for (int y = d->Interlace ? first[pass] : 0; y < d->Height; y += d->Interlace ? step[pass] : 1) {
			if (DGifGetLine(f, s->line, d->Width) != GIF_OK)
				return false;
			for (int x = 0; x < d->Width && d->Top + y < s->height && d->Left + x < s->width; x++)
				put_gif_color(map, s->line[x],
					      s->whole.pixels + ((size_t)(d->Top + y) * (size_t)s->width +
								 (size_t)(d->Left + x)) * 4);
		}
	return true;
}

static int decode_gif(struct gif *s, GifFileType *f, struct err *err)
{
	const ColorMapObject *map;
	int transparent, rc;

	if (!find_first_frame(f, &transparent))
		return err_set(err, ERR_CORRUPT, "%.300s: damaged GIF: no picture", s->in->name);
	map = f->Image.ColorMap ? f->Image.ColorMap : f->SColorMap;
	rc = grow_to(&s->line, &s->line_bytes, (size_t)f->Image.Width + 1, "a GIF", err);
	if (!rc)
		rc = codec_whole_begin(&s->whole, s->width, s->height, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < (size_t)s->width * (size_t)s->height; i++)
		put_gif_color(map, transparent > 0 ? transparent : 0, s->whole.pixels + 4 * i);
	if (!decode_gif_lines(s, f, map))
		return err_set(err, ERR_CORRUPT, "%.300s: damaged GIF: %s", s->in->name,
			       GifErrorString(f->Error) ? GifErrorString(f->Error) : "truncated");
	return 0;
}

static int gif_rows(void *state, const struct picture_input *in, const struct codec_want *w, struct err *err)
{
	struct gif *s = state;
	GifFileType *f;
	int code = 0, rc;

	s->in = in;
	s->at = 0;
	f = DGifOpen(s, read_gif_input, &code);
	if (!f)
		return err_set(err, ERR_CORRUPT, "%.300s: damaged GIF: %s", in->name,
			       GifErrorString(code) ? GifErrorString(code) : "no header");
	rc = decode_gif(s, f, err);
	DGifCloseFile(f, &code);
	if (!rc)
		codec_whole_rows(&s->whole, w);
	return rc;
}

const struct codec codec_gif = {
	.name = "GIF",
	.is = gif_is,
	.open = gif_state,
	.close = gif_close,
	.header = gif_header,
	.rows = gif_rows,
};
