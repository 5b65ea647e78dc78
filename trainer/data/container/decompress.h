/* decompress.h: blocks of bytes as Parquet and Arrow pack them. Which ways there are is configure's to find. */
#ifndef DPT_DATA_DECOMPRESS_H
#define DPT_DATA_DECOMPRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers of Parquet's CompressionCodec. */
enum decompress_kind {
	DECOMPRESS_NONE = 0,
	DECOMPRESS_SNAPPY = 1,
	DECOMPRESS_GZIP = 2,
	DECOMPRESS_ZSTD = 6,
	DECOMPRESS_LZ4 = 7,
	DECOMPRESS_END = 8,
	DECOMPRESS_LZ4_FRAME = 9, /* with a header of its own; none of Parquet's */
};

/* "snappy", …; of what is not unpacked here too. */
const char *decompress_name(int kind);

/* Whether this build can. */
bool decompress_can(int kind);

/* Exactly to_n bytes, whatever the packed ones say. False: they are damaged. */
bool decompress(int kind, const void *from, size_t n, void *to, size_t to_n);

/* Snappy's writers begin anew with each block of unpacked bytes: any of them can be unpacked without the others. */
#define DECOMPRESS_SNAPPY_BLOCK ((size_t)65536)

#define DECOMPRESS_LOOK 5 /* bytes that tell an element of Snappy's, or how many bytes are packed */

/* Packed bytes that are looked at here and there, from front to back. */
struct decompress_look {
	/* Those from a place on: *ret_n, DECOMPRESS_LOOK or as many as there are at least, until the next call; NULL: they
	 * cannot be read. */
	const unsigned char *(*at)(void *user, size_t place, size_t *ret_n);
	void *user;
};

/* Where a block begins in the packed bytes. */
struct decompress_block {
	uint32_t at : 31;
	uint32_t raw : 1; /* in one piece, as it is: its bytes are the last ones in front of the next block */
};

/* How far packed bytes were walked through: zeros at first. */
struct decompress_walk {
	size_t at, done; /* packed bytes, and the unpacked ones that they make */
	size_t known;	 /* blocks whose begin is known, the end of all like one more; none of them changes again */
};

/* Goes on until it is known where the blocks of the first `until` of to_n unpacked bytes begin in the n packed ones,
 * and where the last of these ends; ret has room for one more than there are blocks. Places that are looked at are at
 * most a block apart. False: they are damaged or cannot be read, or blocks do not begin anew. */
bool decompress_snappy_walk(const struct decompress_look *from, size_t n, size_t to_n, size_t until, struct decompress_walk *walk,
			struct decompress_block *ret);

/* Some blocks one after the other, to_n bytes unpacked. False: they are damaged, or need what lies before them. */
bool decompress_snappy_blocks(const void *from, size_t n, void *to, size_t to_n);

/* Packed bytes a piece at a time: as many as *ret then has, until the next call; 0: there are no more. */
struct decompress_source {
	size_t (*next)(void *user, const void **ret);
	void *user;
};

/* The first to_n bytes of a frame (DECOMPRESS_ZSTD, DECOMPRESS_LZ4_FRAME). False: it is damaged, or holds fewer. */
bool decompress_frame(int kind, const struct decompress_source *from, void *to, size_t to_n);

#endif
