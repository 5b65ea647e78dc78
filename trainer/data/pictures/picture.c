/* SPDX-License-Identifier: Apache-2.0 */
/* picture.c: finds the codec of a file, and maps a view of the picture as shown to columns and rows of the file as
 * stored, and back. */
#include "config.h"

#include "trainer/data/pictures/picture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/file.h"
#include "tracker/mem/mem.h"
#include "trainer/data/pictures/codec.h"
#include "trainer/data/pictures/resize.h"

/* ---- formats ---- */

static const struct codec *const codecs[] = {
#ifdef HAVE_IMAGES
	&codec_jpeg, &codec_png,
#endif
#ifdef HAVE_WEBP
	&codec_webp,
#endif
#ifdef HAVE_TIFF
	&codec_tiff,
#endif
	&codec_bmp,  &codec_pnm, &codec_array,
};

/* Why this build cannot read a kind of pictures: "" if it can. */
#ifdef HAVE_IMAGES
#define LACKS_IMAGES ""
#else
#define LACKS_IMAGES "needs libjpeg and libpng (Debian: libjpeg62-turbo-dev libpng-dev), which this build lacks"
#endif
#ifdef HAVE_WEBP
#define LACKS_WEBP ""
#else
#define LACKS_WEBP "needs libwebp (Debian: libwebp-dev), which this build lacks"
#endif
#ifdef HAVE_TIFF
#define LACKS_TIFF ""
#else
#define LACKS_TIFF "needs libtiff (Debian: libtiff-dev), which this build lacks"
#endif
#define NEVER "is a kind of pictures that dptrain does not read: convert them to JPEG or PNG"

static const struct {
	const char *ending, *lacks;
	const char *begins; /* the first bytes of such a file; NULL: not recognised by content */
	size_t at, n;	    /* offset and number */
} endings[] = {
	{ ".jpg", LACKS_IMAGES, "\xff\xd8\xff", 0, 3 },
	{ ".jpeg", LACKS_IMAGES, NULL, 0, 0 },
	{ ".jpe", LACKS_IMAGES, NULL, 0, 0 },
	{ ".jfif", LACKS_IMAGES, NULL, 0, 0 },
	{ ".png", LACKS_IMAGES, "\x89PNG", 0, 4 },
	{ ".webp", LACKS_WEBP, "WEBP", 8, 4 },
	{ ".tif", LACKS_TIFF, "II*\0", 0, 4 },
	{ ".tiff", LACKS_TIFF, "MM\0*", 0, 4 },
	{ ".bmp", "", "BM", 0, 2 },
	{ ".ppm", "", "P6", 0, 2 },
	{ ".pgm", "", "P5", 0, 2 },
	{ ".gif", NEVER, "GIF8", 0, 4 },
	{ ".avif", NEVER, "ftypavif", 4, 8 },
	{ ".heic", NEVER, "ftypheic", 4, 8 },
	{ ".heif", NEVER, "ftypmif1", 4, 8 },
	{ ".jp2", NEVER, "\0\0\0\x0cjP  ", 0, 8 },
	{ ".jxl", NEVER, NULL, 0, 0 },
	{ ".ico", NEVER, NULL, 0, 0 },
	{ ".svg", NEVER, NULL, 0, 0 },
	{ ".psd", NEVER, "8BPS", 0, 4 },
	{ ".exr", NEVER, NULL, 0, 0 },
	{ ".dng", NEVER, NULL, 0, 0 },
};

#define N_ENDINGS (sizeof(endings) / sizeof(endings[0]))

/* Returns the entry of a name's ending; -1: not the name of a picture. */
static int find_ending(const char *name)
{
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < N_ENDINGS; i++)
		if (!strcasecmp(dot, endings[i].ending))
			return (int)i;
	return -1;
}

bool picture_is_one(const char *name)
{
	int i = find_ending(name);

	return i >= 0 && !*endings[i].lacks;
}

bool picture_unsupported(const char *name, char ret[PICTURE_WHY_BYTES])
{
	int i = find_ending(name);

	if (i < 0 || !*endings[i].lacks)
		return false;
	snprintf(ret, PICTURE_WHY_BYTES, "%s %s", endings[i].ending, endings[i].lacks);
	return true;
}

const char *picture_ending(const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < N_ENDINGS; i++)
		if (endings[i].begins && n >= endings[i].at + endings[i].n &&
		    !memcmp(p + endings[i].at, endings[i].begins, endings[i].n))
			return endings[i].ending + 1;
	return "jpg";
}

/* Says why no codec takes a file, from its first bytes. */
static int fail_unknown_picture(const struct picture_input *in, struct err *err)
{
	int rc = file_refuse_pointer(in->name, in->data, in->n, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < N_ENDINGS; i++)
		if (endings[i].begins && *endings[i].lacks && in->n >= endings[i].at + endings[i].n &&
		    !memcmp(in->data + endings[i].at, endings[i].begins, endings[i].n))
			return err_set(err, ERR_CORRUPT, "%.300s: %s %s", in->name, endings[i].ending,
				       endings[i].lacks);
	return err_set(err, ERR_CORRUPT, "%.300s: is not a picture format that dptrain reads (%s)", in->name,
		       PICTURE_ENDINGS);
}

#define KEEP 3
#define N_CODECS (sizeof(codecs) / sizeof(codecs[0]))

struct picture {
	void *state[N_CODECS];
	struct resize *resize;
	uint8_t *file;
	size_t file_bytes;
	char name[320];
	struct picture_input in;
	size_t codec; /* codec of the loaded file */
	struct codec_header header;
};

struct picture *picture_new(void)
{
	struct picture *p = mem_zalloc(sizeof(*p));

	p->resize = resize_new();
	for (size_t i = 0; i < N_CODECS; i++)
		p->state[i] = mem_zalloc(codecs[i]->state_bytes);
	return p;
}

void picture_free(struct picture *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < N_CODECS; i++) {
		codecs[i]->close(p->state[i]);
		free(p->state[i]);
	}
	resize_free(p->resize);
	free(p->file);
	free(p);
}

/* Returns true if stored rows are shown as columns. */
static bool is_transposed(int orientation)
{
	return orientation >= 5;
}

int picture_load_memory(struct picture *p, const struct picture_input *in, struct picture_size *ret, struct err *err)
{
	struct codec_header *h = &p->header;
	int rc;

	p->in = *in;
	for (p->codec = 0; p->codec < N_CODECS && !codecs[p->codec]->is(&p->in); p->codec++)
		;
	if (p->codec == N_CODECS)
		return fail_unknown_picture(&p->in, err);
	rc = codecs[p->codec]->header(p->state[p->codec], &p->in, h, err);
	if (rc)
		return rc;
	if (h->width < 1 || h->height < 1 || (int64_t)h->width * h->height > PICTURE_PIXELS_MAX)
		return err_set(err, ERR_CORRUPT, "%.300s: %d x %d pixels: expected at most %lld in total", in->name,
			       h->width, h->height, (long long)PICTURE_PIXELS_MAX);
	*ret = is_transposed(h->orientation) ? (struct picture_size){ h->height, h->width }
					     : (struct picture_size){ h->width, h->height };
	return 0;
}

static int read_picture_file(struct picture *p, int fd, const char *path, size_t *ret_n, struct err *err)
{
	struct stat st;
	ssize_t got;
	size_t n;

	if (fstat(fd, &st))
		return err_set(err, ERR_CORRUPT, "%.300s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_size < 1 || (size_t)st.st_size > PICTURE_FILE_MAX)
		return err_set(err, ERR_CORRUPT, "%.300s: %s", path,
			       !S_ISREG(st.st_mode) ? "is not a regular file"
			       : st.st_size	    ? "is too large for a picture"
						    : "is empty");
	n = (size_t)st.st_size;
	grow_to(&p->file, &p->file_bytes, n);
	got = file_read(fd, 0, p->file, n);
	if (got < 0)
		return err_set(err, ERR_CORRUPT, "%.300s: %s", path, strerror(errno));
	*ret_n = (size_t)got;
	return 0;
}

int picture_load(struct picture *p, const char *path, struct picture_size *ret, struct err *err)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), rc; /* does not wait for a pipe */
	size_t n = 0;

	if (fd < 0)
		return err_set(err, ERR_CORRUPT, "%.300s: %s", path, strerror(errno));
	rc = read_picture_file(p, fd, path, &n, err);
	close(fd);
	if (rc)
		return rc;
	snprintf(p->name, sizeof(p->name), "%.300s", path);
	return picture_load_memory(p, &(struct picture_input){ p->name, p->file, n }, ret, err);
}

/* The view in stored coordinates. */
struct stored {
	double x, y, width, height;
	int out_width, out_height;
};

static struct stored convert_to_stored(const struct codec_header *h, const struct picture_view *v)
{
	struct stored s = { v->x, v->y, v->width, v->height, v->out_width, v->out_height };
	int o = h->orientation;

	if (is_transposed(o))
		s = (struct stored){ v->y, v->x, v->height, v->width, v->out_height, v->out_width };
	/* These orientations count from the opposite side. */
	if (o == 2 || o == 3 || o == 7 || o == 8)
		s.x = h->width - s.x - s.width;
	if (o == 3 || o == 4 || o == 6 || o == 7)
		s.y = h->height - s.y - s.height;
	return s;
}

/* Returns 8, 4 or 2 if the shrunk box still has at least KEEP times the output's pixels in each direction, else 1.
 * The averaging of a smaller inverse transform then disappears in that of the scaling. */
static int choose_shrink(const struct codec_header *h, const struct stored *s)
{
	int shrink = 8;

	while (shrink > 1 &&
	       (!h->scales || s->width / shrink < KEEP * s->out_width || s->height / shrink < KEEP * s->out_height))
		shrink /= 2;
	return shrink;
}

/* Converts an axis of the box to a picture shrunk by 1/shrink. a.end: side of the whole picture. cut: uses only
 * pixels inside the box. */
static struct resize_axis shrink_resize_axis(struct resize_axis a, int shrink, bool cut)
{
	int shown = (a.end + shrink - 1) / shrink;

	a.from /= shrink;
	a.size /= shrink;
	a.end = shown;
	if (cut) {
		a.begin = (int)a.from;
		a.end = (int)(a.from + a.size + 0.999999);
		a.end = a.end < shown ? a.end : shown;
	}
	return a;
}

static void pass_row_to_resize(void *user, const uint8_t *pixels)
{
	resize_row(user, pixels);
}

/* Byte offset in the scaled stored picture of pixel (x, y) as shown. */
static ptrdiff_t stored_offset(int orientation, int x, int y, const struct stored *s, size_t stride)
{
	int sx = is_transposed(orientation) ? y : x, sy = is_transposed(orientation) ? x : y;

	if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8)
		sx = s->out_width - 1 - sx;
	if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7)
		sy = s->out_height - 1 - sy;
	return (ptrdiff_t)sy * (ptrdiff_t)stride + (ptrdiff_t)sx * RESIZE_PIXEL_BYTES;
}

static void copy_oriented_result(const struct picture *p, const struct picture_view *v, const struct stored *s,
				 uint8_t *ret)
{
	size_t stride;
	const uint8_t *from = resize_result(p->resize, &stride);
	int o = p->header.orientation, left = v->flip ? v->out_width - 1 : 0, next = v->flip ? v->out_width - 2 : 1;
	ptrdiff_t step = stored_offset(o, next, 0, s, stride) - stored_offset(o, left, 0, s, stride);

	for (int y = 0; y < v->out_height; y++) {
		const uint8_t *pixel = from + stored_offset(o, left, y, s, stride);
		uint8_t *to = ret + (size_t)y * (size_t)v->out_width * 3;

		for (int x = 1; x < v->out_width; x++, to += 3, pixel += step)
			memcpy(to, pixel, 4); /* one byte too many; the next pixel overwrites it */
		memcpy(to, pixel, 3);
	}
}

int picture_render(struct picture *p, const struct picture_view *v, uint8_t *ret, struct err *err)
{
	const struct codec_header *h = &p->header;
	struct stored s = convert_to_stored(h, v);
	int shrink = choose_shrink(h, &s), rc;
	const struct resize_axis x = { .from = s.x, .size = s.width, .end = h->width, .out = s.out_width };
	const struct resize_axis y = { .from = s.y, .size = s.height, .end = h->height, .out = s.out_height };
	const struct resize_opts o = { .x = shrink_resize_axis(x, shrink, v->cut),
				       .y = shrink_resize_axis(y, shrink, v->cut) };
	struct resize_need need;
	struct codec_want want;

	resize_begin(p->resize, &o);
	need = resize_need(p->resize);
	want = (struct codec_want){ .x0 = need.x0,
				    .x1 = need.x1,
				    .y0 = need.y0,
				    .y1 = need.y1,
				    .shrink = shrink,
				    .row = pass_row_to_resize,
				    .user = p->resize };
	rc = codecs[p->codec]->rows(p->state[p->codec], &p->in, &want, err);
	if (!rc)
		copy_oriented_result(p, v, &s, ret);
	return rc;
}
