/* blocks.c: joins the fragments of records of the LevelDB log format. */
#include "web/cli/import/blocks.h"

#include <string.h>
#include <zlib.h>

#include "tracker/base/err.h"

#define BLOCK_BYTES 32768u
#define PIECE_HEAD_BYTES 7u
#define RECORD_MAX ((size_t)1 << 30)

enum piece { PIECE_NONE = 0, PIECE_FULL = 1, PIECE_FIRST = 2, PIECE_MIDDLE = 3, PIECE_LAST = 4 };

int blocks_init(struct blocks *b, const void *bytes, size_t n)
{
	static const unsigned char head[BLOCKS_HEAD_BYTES] = { ':', 'W', '&', 'B', 0xe1, 0xbe, 0 };

	*b = (struct blocks){ .bytes = bytes, .n = n, .at = BLOCKS_HEAD_BYTES };
	buf_init(&b->whole, RECORD_MAX);
	return n < sizeof(head) || memcmp(bytes, head, sizeof(head)) ? ERR_CORRUPT : 0;
}

void blocks_done(struct blocks *b)
{
	buf_done(&b->whole);
}

static size_t block_bytes_left(const struct blocks *b)
{
	return BLOCK_BYTES - b->at % BLOCK_BYTES;
}

/* Finds the next complete, undamaged fragment; PIECE_NONE at the end. */
static enum piece next_block_piece(struct blocks *b, struct event_span *ret)
{
	while (b->at < b->n) {
		const unsigned char *p = b->bytes + b->at;
		size_t left = block_bytes_left(b), rest = b->n - b->at, n;
		uint32_t crc;

		if (left < PIECE_HEAD_BYTES) {
			b->at += left;
			continue;
		}
		if (rest < PIECE_HEAD_BYTES)
			return PIECE_NONE;
		n = p[4] | (size_t)p[5] << 8;
		if (PIECE_HEAD_BYTES + n > rest && PIECE_HEAD_BYTES + n <= left)
			return PIECE_NONE;
		memcpy(&crc, p, sizeof(crc));
		if (PIECE_HEAD_BYTES + n <= left && p[6] >= PIECE_FULL && p[6] <= PIECE_LAST &&
		    le32toh(crc) == crc32(0, p + 6, (uInt)n + 1)) {
			b->at += PIECE_HEAD_BYTES + n;
			*ret = (struct event_span){ p + PIECE_HEAD_BYTES, p + PIECE_HEAD_BYTES + n };
			return (enum piece)p[6];
		}
		b->damaged++;
		b->at += left;
	}
	return PIECE_NONE;
}

int blocks_next(struct blocks *b, struct event_span *ret)
{
	bool open = false; /* a first fragment has been read */
	enum piece what;

	buf_reset(&b->whole);
	while ((what = next_block_piece(b, ret)) != PIECE_NONE) {
		if (what == PIECE_FULL || what == PIECE_FIRST) {
			b->damaged += open;
			buf_reset(&b->whole);
		} else if (!open) {
			b->damaged++;
			continue;
		}
		if (what == PIECE_FULL)
			return 1;
		buf_add(&b->whole, ret->at, (size_t)(ret->end - ret->at));
		open = true;
		if (what != PIECE_LAST)
			continue;
		open = false;
		if (buf_failed(&b->whole)) {
			b->damaged++;
			continue;
		}
		*ret = (struct event_span){ (const unsigned char *)b->whole.data,
					    (const unsigned char *)b->whole.data + b->whole.len };
		return 1;
	}
	return 0;
}
