/* SPDX-License-Identifier: Apache-2.0 */
/* ring_file.c: a ring buffer in a file. Positions increase forever; the file holds the last `bytes` of them. A stretch
 * is reserved before it is written. So a reader that finds its position still valid after reading has read
 * consistent data. */
#include "trainer/data/store/ring_file.h"

#include <linux/magic.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tracker/base/file.h"

#define SHARE 16 /* share of the free disk space */

struct ring_file {
	int fd;
	uint64_t bytes;
	_Atomic uint64_t next; /* next position */
};

/* Bytes that the ring may use on the disk; 0: a memory file system, or unknown. */
static uint64_t allowed_ring_bytes(int fd)
{
	struct statfs s;

	if (fstatfs(fd, &s) != 0 || s.f_type == TMPFS_MAGIC || s.f_type == RAMFS_MAGIC)
		return 0;
	return (uint64_t)s.f_bavail * (uint64_t)s.f_bsize / SHARE;
}

struct ring_file *ring_file_open(const char *folder, uint64_t bytes)
{
	int fd = file_nameless(folder);
	uint64_t room = fd < 0 ? 0 : allowed_ring_bytes(fd);
	struct ring_file *a = room ? calloc(1, sizeof(*a)) : NULL;

	if (!a) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	a->fd = fd;
	a->bytes = bytes < room ? bytes : room;
	atomic_init(&a->next, a->bytes);
	return a;
}

void ring_file_close(struct ring_file *a)
{
	if (!a)
		return;
	close(a->fd);
	free(a);
}

/* Reserves n bytes. A stretch never wraps around the end of the file. */
static uint64_t reserve_stretch(struct ring_file *a, size_t n)
{
	uint64_t was = atomic_load(&a->next), place;

	do {
		uint64_t left = a->bytes - was % a->bytes;

		place = left < n ? was + left : was;
	} while (!atomic_compare_exchange_weak(&a->next, &was, place + n));
	return place;
}

uint64_t ring_file_put(struct ring_file *a, const void *bytes, size_t n)
{
	const char *from = bytes;
	uint64_t place;

	if (n > a->bytes)
		return 0;
	place = reserve_stretch(a, n);
	for (size_t done = 0; done < n;) {
		ssize_t wrote = pwrite(a->fd, from + done, n - done, (off_t)(place % a->bytes + done));

		if (wrote <= 0)
			return 0;
		done += (size_t)wrote;
	}
	return place;
}

bool ring_file_holds(struct ring_file *a, uint64_t place)
{
	return place && atomic_load(&a->next) - place <= a->bytes;
}

bool ring_file_read(struct ring_file *a, uint64_t place, size_t skip, void *to, size_t n)
{
	return ring_file_holds(a, place) && file_read(a->fd, place % a->bytes + skip, to, n) == (ssize_t)n &&
	       ring_file_holds(a, place);
}
