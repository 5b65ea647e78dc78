/* copy_file.h: of a mapped file, what copies keep resident of it: for C and CUDA C++ alike. */
#ifndef DPT_OPS_COPY_FILE_H
#define DPT_OPS_COPY_FILE_H

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* Of a file: what is resident of it at a time. */
#define COPY_PIECE_BYTES ((size_t)4 << 20)

/* Pages of a mapped file (MAP_SHARED) are the process's no longer: what they hold stays the file's. Neighbours on the
 * first and the last of them find theirs again. */
static inline void copy_give_back(void *at, size_t bytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), skipped = (size_t)at % page;

	madvise((unsigned char *)at - skipped, bytes + skipped, MADV_DONTNEED);
}

#endif
