/* arrow_buffer.c: streams a compressed buffer from the file to the decompressor, one piece at a time. */
#include "trainer/data/container/arrow_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/base/little.h"
#include "trainer/data/container/decompress.h"

#define PIECE ((size_t)256 << 10)

struct frame_reader {
	const struct byte_source *file;
	uint64_t at;
	unsigned char *piece;
	struct err *err;
	int rc;
};

int arrow_packing_of(int64_t n)
{
	if (n == 0 && decompress_can(DECOMPRESS_LZ4_FRAME))
		return ARROW_LZ4;
	return n == 1 && decompress_can(DECOMPRESS_ZSTD) ? ARROW_ZSTD : -1;
}

int arrow_buffer_size(const struct byte_source *file, uint64_t at, int64_t *ret, struct err *err)
{
	unsigned char head[ARROW_BUFFER_HEAD];
	int rc = 0;

	if (at > file->bytes || file->bytes - at < sizeof(head))
		return err_set(err, ERR_CORRUPT, "a compressed buffer exceeds the file");
	rc = file->read(file->user, at, head, sizeof(head), err);
	if (!rc)
		*ret = (int64_t)little_get_u64(head);
	return rc;
}

static size_t read_frame_piece(void *user, const void **ret)
{
	struct frame_reader *r = user;
	uint64_t left = r->file->bytes - r->at;
	size_t n = left < PIECE ? (size_t)left : PIECE;

	r->rc = n ? r->file->read(r->file->user, r->at, r->piece, n, r->err) : 0;
	if (r->rc)
		return 0;
	r->at += n;
	*ret = r->piece;
	return n;
}

int arrow_buffer_read(const struct arrow_buffer *b, void *to, size_t n, struct err *err)
{
	struct frame_reader r = {
		.file = b->file, .at = b->at + ARROW_BUFFER_HEAD, .err = err, .piece = malloc(PIECE)
	};
	const struct decompress_source from = { read_frame_piece, &r };
	bool whole;

	if (!r.piece)
		return err_set(err, ERR_NOMEM, "out of memory: a compressed buffer");
	whole = decompress_frame(b->packing == ARROW_ZSTD ? DECOMPRESS_ZSTD : DECOMPRESS_LZ4_FRAME, &from, to, n);
	free(r.piece);
	if (whole || r.rc)
		return r.rc;
	return err_set(err, ERR_CORRUPT, "a compressed buffer is damaged");
}

int arrow_buffer_whole(const struct arrow_buffer *b, unsigned char **ret, uint32_t *ret_n, struct err *err)
{
	unsigned char *bytes;
	int64_t n = 0;
	int rc = arrow_buffer_size(b->file, b->at, &n, err);

	if (rc)
		return rc;
	if (n < 0 || n > ARROW_BUFFER_MAX)
		return err_set(err, ERR_CORRUPT, "a compressed buffer has changed since it was indexed");
	bytes = malloc((size_t)n + 1);
	if (!bytes)
		return err_set(err, ERR_NOMEM, "out of memory: a buffer of %lld bytes", (long long)n);
	rc = arrow_buffer_read(b, bytes, (size_t)n, err);
	if (rc) {
		free(bytes);
		return rc;
	}
	*ret = bytes;
	*ret_n = (uint32_t)n;
	return 0;
}
