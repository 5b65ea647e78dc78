/* cache_sweep.c: lists the blocks of a cache folder and removes the oldest. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "trainer/data/store/cache_inside.h"

#define FOLDERS 256
#define UNFINISHED_S (24 * 60 * 60)

struct swept_file {
	struct timespec used;
	uint64_t bytes;
	unsigned char folder;
	char name[64];
};

struct folder_sweep {
	const char *folder;
	struct swept_file *found;
	size_t n, cap;
	uint64_t bytes;
};

static int compare_use_times(const void *a, const void *b)
{
	const struct timespec *x = &((const struct swept_file *)a)->used, *y = &((const struct swept_file *)b)->used;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static void add_swept_file(struct folder_sweep *s, const struct swept_file *f)
{
	s->bytes += f->bytes;
	if (s->n == s->cap) {
		struct swept_file *more = realloc(s->found, (s->cap ? 2 * s->cap : 1024) * sizeof(*more));

		if (!more)
			return; /* counted, but not removable in this sweep */
		s->found = more;
		s->cap = s->cap ? 2 * s->cap : 1024;
	}
	s->found[s->n++] = *f;
}

/* Lists the blocks in one of the subfolders. */
static void scan_block_folder(struct folder_sweep *s, int number)
{
	char path[CACHE_PATH_BYTES];
	struct dirent *e;
	struct stat st;
	DIR *d;

	snprintf(path, sizeof(path), "%.4000s/%02x", s->folder, (unsigned)number);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		struct swept_file f = { .folder = (unsigned char)number };

		if (strlen(e->d_name) >= sizeof(f.name) || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode))
			continue;
		snprintf(f.name, sizeof(f.name), "%.63s", e->d_name);
		f.used = st.st_mtim;
		f.bytes = (uint64_t)st.st_size;
		add_swept_file(s, &f);
	}
	if (d)
		closedir(d);
}

/* Removes files of killed writers, on file systems without unnamed files. */
static void remove_unfinished_files(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	struct stat st;

	while (d && (e = readdir(d)))
		if (!strncmp(e->d_name, "new-", 4) && !fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    st.st_mtime + UNFINISHED_S < time(NULL))
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
}

uint64_t cache_sweep_folder(const char *folder, uint64_t goal)
{
	struct folder_sweep s = { .folder = folder };
	char path[CACHE_PATH_BYTES];

	for (int i = 0; i < FOLDERS; i++)
		scan_block_folder(&s, i);
	if (s.n)
		qsort(s.found, s.n, sizeof(*s.found), compare_use_times);
	for (size_t i = 0; goal && i < s.n && s.bytes > goal; i++) {
		snprintf(path, sizeof(path), "%.4000s/%02x/%s", folder, (unsigned)s.found[i].folder, s.found[i].name);
		if (!unlink(path))
			s.bytes -= s.found[i].bytes;
	}
	remove_unfinished_files(folder);
	free(s.found);
	return s.bytes;
}
