/* tar_block.h: parses and builds a 512-byte tar header: POSIX.1-1988 ustar, the older v7 form and GNU's
 * (https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html, "ustar Interchange Format"; GNU tar's
 * manual, "Basic Tar Format"). Does no I/O. */
#ifndef DPT_DATA_TAR_BLOCK_H
#define DPT_DATA_TAR_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define TAR_BLOCK 512
#define TAR_BYTES_MAX ((uint64_t)1 << 50) /* per entry */

enum tar_kind {
	TAR_FILE,
	TAR_PAX,       /* contains pax records for the next entry */
	TAR_LONG_NAME, /* contains the name of the next entry (GNU) */
	TAR_OTHER,     /* folder, link or other type: skipped */
	TAR_END,       /* zeros */
	TAR_DAMAGED,   /* invalid */
};

struct tar_block {
	enum tar_kind kind;
	uint64_t bytes; /* size of the content; stored rounded up to whole blocks */
	char name[257];
};

/* Parses a header of TAR_BLOCK bytes. An invalid one has the kind TAR_DAMAGED. */
void tar_block_parse(const void *block, struct tar_block *ret);

/* Builds the header of a world-readable file without owner and date, so that equal input gives equal bytes. name: at
 * most 99 bytes. */
void tar_block_make(void *block, const char *name, uint64_t bytes);

static inline uint64_t tar_block_padded(uint64_t bytes)
{
	return (bytes + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}

#endif
