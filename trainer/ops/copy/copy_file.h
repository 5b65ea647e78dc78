/* copy_file.h: limits the resident memory of copies from and to a mapped file. For C and CUDA C++. */
#ifndef DPT_OPS_COPY_FILE_H
#define DPT_OPS_COPY_FILE_H

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes of the file that are resident at a time. */
#define COPY_PIECE_BYTES ((size_t)4 << 20)

/* Drops the pages of a mapped file (MAP_SHARED) from the process; the file keeps their content. Data next to the range
 * on its first or last page is read again on access. */
static inline void copy_give_back(void *at, size_t bytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), skipped = (size_t)at % page;

	madvise((unsigned char *)at - skipped, bytes + skipped, MADV_DONTNEED);
}

#endif
