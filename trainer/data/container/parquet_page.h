/* parquet_page.h: the pages of a Parquet file, unpacked: where a value lies is said by the page's place in the file and
 * the value's place in what is unpacked of it. Knows no columns. */
#ifndef DPT_DATA_PARQUET_PAGE_H
#define DPT_DATA_PARQUET_PAGE_H

#include <stdbool.h>

#include "trainer/data/container/byte_source.h"
#include "trainer/data/container/decompress.h"

#define PARQUET_PAGE_MAX (((uint32_t)1 << 28) - 1) /* bytes of a page, unpacked */

enum parquet_page_kind { PARQUET_DATA = 0, PARQUET_INDEX = 1, PARQUET_DICTIONARY = 2, PARQUET_DATA_2 = 3 };

enum parquet_encoding {
	PARQUET_PLAIN = 0,
	PARQUET_PLAIN_DICTIONARY = 2,
	PARQUET_RLE = 3,
	PARQUET_DELTA_NUMBERS = 5,
	PARQUET_DELTA_LENGTHS = 6,
	PARQUET_DELTA_BYTES = 7,
	PARQUET_RLE_DICTIONARY = 8,
	PARQUET_SPLIT = 9,
};

struct parquet_page {
	enum parquet_page_kind kind;
	int encoding;
	uint32_t values;	       /* nulls included */
	uint32_t levels[2];	       /* PARQUET_DATA_2: bytes of levels of repetition and definition, in front */
	uint64_t next;		       /* where the next page begins */
	uint64_t plain;		       /* where bytes[0] lies in the file, when nothing is packed; else 0 */
	unsigned char *bytes;	       /* n of them; the caller's to free */
	uint32_t n;
};

/* The page that begins at `at`, below `end`. ERR_CORRUPT: it is damaged; the text names no file. */
int parquet_page_read(struct parquet_page *ret, const struct byte_source *file, uint64_t at, uint64_t end, int codec,
		      struct err *err);

/* Where parts of a page packed by Snappy lie, so that they can be read without the rest. */
struct parquet_page_map {
	uint64_t begin;	 /* of the packed bytes, in the file */
	uint32_t levels; /* bytes in front of them, which are not packed */
	uint32_t n;	 /* bytes of the page, unpacked */
	uint32_t packed; /* of them those that are packed, as they lie in the file */
	struct decompress_walk walk;    /* how far it goes */
	struct decompress_block *block; /* decompress_snappy_walk's; the caller's to free */
};

/* For a page of at least `least` bytes: one that goes nowhere so far. 1: it is smaller, or cannot be read in parts;
 * ERR_CORRUPT: it is damaged. */
int parquet_page_map(struct parquet_page_map *ret, const struct byte_source *file, uint64_t at, uint32_t least,
		     struct err *err);

/* Whether the map goes as far as the n bytes at a place of the page. Where it does, it stays as it is for them while it
 * grows further. */
bool parquet_page_reaches(const struct parquet_page_map *m, uint32_t at, size_t n);

/* Makes it go a step towards that, by one thread at a time. 1: what was looked at cannot be read in parts. */
int parquet_page_grow(struct parquet_page_map *m, const struct byte_source *file, uint32_t at, size_t n,
		      struct err *err);

/* The n bytes at a place of the page (parquet_page's bytes) that the map reaches. ERR_CORRUPT: they leave it, or are
 * damaged. */
int parquet_page_part(const struct parquet_page_map *m, const struct byte_source *file, uint32_t at, size_t n, void *to,
		      struct err *err);

#endif
