/* tar_block.h: one 512-byte header of a tar archive, read and made: POSIX.1-1988 ustar, v7's older form and GNU's
 * (https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html, "ustar Interchange Format"; GNU tar's manual,
 * "Basic Tar Format"). Knows no files. */
#ifndef DPT_DATA_TAR_BLOCK_H
#define DPT_DATA_TAR_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define TAR_BLOCK 512
#define TAR_BYTES_MAX ((uint64_t)1 << 50) /* of one entry */

enum tar_kind {
	TAR_FILE,
	TAR_PAX,       /* its bytes are pax records for the entry behind it */
	TAR_LONG_NAME, /* its bytes are the name of the entry behind it (GNU) */
	TAR_OTHER,     /* folders, links, what else there is: passed over */
	TAR_END,       /* zeros */
	TAR_DAMAGED,   /* neither */
};

struct tar_block {
	enum tar_kind kind;
	uint64_t bytes; /* that follow it; stored rounded up to whole blocks */
	char name[257];
};

void tar_block_parse(const void *block, struct tar_block *ret);

/* The header of a file that everybody may read, without owner and date: the same input, the same bytes. The name has at
 * most 99 bytes. */
void tar_block_make(void *block, const char *name, uint64_t bytes);

static inline uint64_t tar_block_padded(uint64_t bytes)
{
	return (bytes + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}

#endif
