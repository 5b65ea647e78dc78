/* idx_file.c: opens and checks one IDX file. */
#include "trainer/data/formats/idx_file.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#define TYPE_U8 0x08
#define HEADER_MAX (4 + 4 * IDX_DIMS_MAX)
#define DEFLATE_RATIO_MAX 1032 /* largest compression ratio of deflate */
#define CHUNK_MAX (1u << 30)   /* zlib counts in 32 bits */

struct idx_source { /* a mapped file, and the decoder's state for gzip */
	const char *path;
	struct file_map file;
	size_t at;
	z_stream zs;
	int64_t produced;
	bool ended; /* the last gzip member is complete */
};

/* Parses the type and the dimensions from the n bytes at h. */
static int parse_idx_header(struct idx_file *f, const char *path, const uint8_t *h, size_t n, struct err *err)
{
	size_t bytes = 1;

	if (n < 4 || h[0] || h[1])
		return err_set(err, ERR_USAGE, "%.300s: is not an IDX file: it must begin with two zero bytes", path);
	if (h[2] != TYPE_U8)
		return err_set(err, ERR_USAGE, "%.300s: has elements of type 0x%02x: expected unsigned bytes (0x08)",
			       path, h[2]);
	if (h[3] < 1 || h[3] > IDX_DIMS_MAX)
		return err_set(err, ERR_USAGE, "%.300s: has %d dimensions: expected 1 to %d", path, h[3], IDX_DIMS_MAX);
	f->ndim = h[3];
	if (n < 4 + 4 * (size_t)f->ndim)
		return err_set(err, ERR_USAGE, "%.300s: is truncated in its header, after %zu bytes", path, n);
	for (int i = 0; i < f->ndim; i++) {
		const uint8_t *p = h + 4 + 4 * i;

		f->dim[i] = (int64_t)((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]);
		if (__builtin_mul_overflow(bytes, (size_t)f->dim[i], &bytes) || bytes > PTRDIFF_MAX)
			return err_set(err, ERR_USAGE, "%.300s: its dimensions exceed the address space", path);
	}
	f->bytes = bytes;
	return 0;
}

/* Refills the decoder's input. False: end of the file. */
static int refill_inflate_input(struct idx_source *s)
{
	size_t left = s->file.n - s->at;

	if (s->zs.avail_in)
		return 1;
	s->zs.next_in = (Bytef *)(s->file.bytes + s->at);
	s->zs.avail_in = left > CHUNK_MAX ? CHUNK_MAX : (uInt)left;
	s->at += s->zs.avail_in;
	return s->zs.avail_in > 0;
}

/* After the end of a gzip member. Returns 1 if another member follows, which continues the data; 0 at the end of the
 * file; negative on other trailing bytes. */
static int next_gzip_member(struct idx_source *s, struct err *err)
{
	const uint8_t *rest;
	size_t left;

	s->at -= s->zs.avail_in;
	s->zs.avail_in = 0;
	rest = s->file.bytes + s->at;
	left = s->file.n - s->at;
	if (left >= 2 && rest[0] == 0x1f && rest[1] == 0x8b)
		return inflateReset(&s->zs) == Z_OK ? 1
						    : err_set(err, ERR_USAGE, "%.300s: is damaged gzip data", s->path);
	for (size_t i = 0; i < left; i++)
		if (rest[i])
			return err_set(err, ERR_USAGE, "%.300s: %zu bytes after its end are not gzip", s->path, left);
	return 0;
}

/* Inflates up to n bytes. *ret_n < n only at the end of the data. */
static int inflate_idx_bytes(struct idx_source *s, uint8_t *to, size_t n, size_t *ret_n, struct err *err)
{
	size_t done = 0;

	while (done < n && !s->ended) {
		uInt room = n - done > CHUNK_MAX ? CHUNK_MAX : (uInt)(n - done);
		int rc, more;

		if (!refill_inflate_input(s))
			return err_set(err, ERR_USAGE, "%.300s: truncated: its gzip data stops after %lld bytes",
				       s->path, (long long)s->produced);
		s->zs.next_out = to + done;
		s->zs.avail_out = room;
		rc = inflate(&s->zs, Z_NO_FLUSH);
		done += room - s->zs.avail_out;
		s->produced += room - s->zs.avail_out;
		if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
			return err_set(err, ERR_USAGE, "%.300s: is damaged gzip data after %lld bytes (%s)", s->path,
				       (long long)s->produced, s->zs.msg ? s->zs.msg : "out of memory");
		if (rc != Z_STREAM_END)
			continue;
		more = next_gzip_member(s, err);
		if (more < 0)
			return more;
		s->ended = !more;
	}
	*ret_n = done;
	return 0;
}

/* Inflates the elements and checks that their size is the header's. */
static int inflate_idx_body(struct idx_file *f, struct idx_source *s, struct err *err)
{
	uint8_t extra;
	size_t got;
	int rc;

	if (f->bytes / DEFLATE_RATIO_MAX > s->file.n)
		return err_set(err, ERR_USAGE,
			       "%.300s: its header states %zu bytes, more than %zu bytes of gzip can contain", s->path,
			       f->bytes, s->file.n);
	f->memory = malloc(f->bytes ? f->bytes : 1);
	if (!f->memory)
		return err_set(err, ERR_NOMEM, "%.300s: out of memory for %zu bytes", s->path, f->bytes);
	rc = inflate_idx_bytes(s, f->memory, f->bytes, &got, err);
	if (!rc && got < f->bytes)
		rc = err_set(err, ERR_USAGE, "%.300s: its header states %zu bytes, found %zu", s->path, f->bytes, got);
	if (!rc) /* zlib then compares the checksum */
		rc = inflate_idx_bytes(s, &extra, 1, &got, err);
	if (!rc && got)
		rc = err_set(err, ERR_USAGE, "%.300s: has more than the %zu bytes that its header states", s->path,
			     f->bytes);
	f->data = f->memory;
	return rc;
}

static int open_gzip_idx(struct idx_file *f, struct idx_source *s, struct err *err)
{
	uint8_t h[HEADER_MAX];
	size_t got = 0, need = 4;
	int rc;

	if (inflateInit2(&s->zs, 16 + MAX_WBITS) != Z_OK)
		return err_set(err, ERR_NOMEM, "%.300s: out of memory for gzip", s->path);
	rc = inflate_idx_bytes(s, h, need, &got, err);
	if (!rc && got == need && h[3] <= IDX_DIMS_MAX) {
		need += 4 * (size_t)h[3];
		rc = inflate_idx_bytes(s, h + 4, need - 4, &got, err);
		got += 4;
	}
	if (!rc)
		rc = parse_idx_header(f, s->path, h, got, err);
	if (!rc)
		rc = inflate_idx_body(f, s, err);
	inflateEnd(&s->zs);
	return rc;
}

static int open_plain_idx(struct idx_file *f, struct idx_source *s, struct err *err)
{
	size_t header;
	int rc = parse_idx_header(f, s->path, s->file.bytes, s->file.n, err);

	if (rc)
		return rc;
	header = 4 + 4 * (size_t)f->ndim;
	if (s->file.n - header != f->bytes)
		return err_set(err, ERR_USAGE, "%.300s: %s: its header states %zu bytes, found %zu", s->path,
			       s->file.n - header < f->bytes ? "truncated" : "too long", f->bytes, s->file.n - header);
	f->data = s->file.bytes + header;
	f->file = s->file;
	s->file = (struct file_map){ 0 };
	return 0;
}

int idx_file_open(struct idx_file *ret, const char *path, struct err *err)
{
	struct idx_source s = { .path = path };
	struct idx_file f = { .ndim = 0 };
	int rc = file_map_open(&s.file, path, err);

	if (!rc && !s.file.n)
		rc = err_set(err, ERR_USAGE, "%.300s: is empty", path);
	if (rc)
		return rc;
	if (s.file.n >= 2 && s.file.bytes[0] == 0x1f && s.file.bytes[1] == 0x8b)
		rc = open_gzip_idx(&f, &s, err);
	else
		rc = open_plain_idx(&f, &s, err);
	file_map_close(&s.file);
	if (rc) {
		idx_file_close(&f);
		return rc;
	}
	*ret = f;
	return 0;
}

void idx_file_close(struct idx_file *f)
{
	file_map_close(&f->file);
	free(f->memory);
	memset(f, 0, sizeof(*f));
}
