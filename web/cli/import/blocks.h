/* blocks.h: the log format that LevelDB and W&B's .wandb files share: blocks of 32 KiB, records cut into pieces that
 * lie within one, each piece with CRC-32 (zlib's, over its type and data), length and type. Pure: bytes in memory, no
 * knowledge of what records mean. */
#ifndef DPT_CLI_BLOCKS_H
#define DPT_CLI_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/buf.h"
#include "tracker/event/event.h"

#define BLOCKS_HEAD_BYTES 7 /* of the file, inside the first block: ":W&B", 0xBEE1 little-endian, version 0 */

struct blocks {
	const unsigned char *bytes;
	size_t n, at;
	struct buf whole; /* a record that was cut */
	uint64_t damaged; /* pieces that could not be used, and records that lack one */
};

/* ERR_CORRUPT: the head is another one. Borrows the bytes; blocks_done also after a failure. */
int blocks_init(struct blocks *b, const void *bytes, size_t n);
void blocks_done(struct blocks *b);

/* The next whole record: 1, or 0 at the end; a torn tail, as a process that was killed leaves it, is an end. The bytes
 * are good until the next call. Behind damage it goes on with the next block. */
int blocks_next(struct blocks *b, struct event_span *ret);

#endif
