/* SPDX-License-Identifier: Apache-2.0 */
/* cache_folder.c: a folder in /dev/shm that lives as long as its users, and the sweep of a folder.
 *
 * Each process holds a shared lock on the file "alive" of a folder in memory; the kernel releases it however the
 * process ends. A guard process, which shares nothing with the others, waits for the exclusive lock and removes the
 * folder. */
#include "tracker/mem/mem.h"
#include "trainer/data/store/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROOT "/dev/shm"
#define TRIES 100
#define ENTRIES_BYTES 32768

struct cache_ram {
	int fd; /* of alive */
};

/* ---- the guard: after the fork of a threaded process only system calls are safe ---- */

struct kernel_dirent {
	uint64_t node;
	int64_t next;
	unsigned short bytes;
	unsigned char kind;
	char name[];
};

/* Removes two levels of folders. A second call removes what appeared in between. */
static void remove_below(int folder, int depth)
{
	static char room[3][ENTRIES_BYTES] __attribute__((aligned(8)));
	long n;

	while ((n = syscall(SYS_getdents64, folder, room[depth], (size_t)ENTRIES_BYTES)) > 0)
		for (long at = 0; at < n;) {
			const struct kernel_dirent *e = (const struct kernel_dirent *)(const void *)(room[depth] + at);
			int below;

			at += e->bytes;
			if (!strcmp(e->name, ".") || !strcmp(e->name, ".."))
				continue;
			below = depth < 2 ? openat(folder, e->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW) : -1;
			if (below >= 0) {
				remove_below(below, depth + 1);
				close(below);
			}
			unlinkat(folder, e->name, below >= 0 ? AT_REMOVEDIR : 0);
		}
}

struct guard_paths {
	char folder[CACHE_PATH_BYTES], alive[CACHE_PATH_BYTES], guard[CACHE_PATH_BYTES];
};

/* Ends when the folder is removed, or if another guard already waits. */
static void run_cache_guard(const struct guard_paths *p)
{
	int fd, one, here;

	prctl(PR_SET_NAME, "dptrain-cache");
	syscall(SYS_close_range, 0u, ~0u, 0u);
	one = open(p->guard, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	fd = open(p->alive, O_RDWR | O_CLOEXEC);
	if (one < 0 || fd < 0 || flock(one, LOCK_EX | LOCK_NB))
		_exit(0);
	while (flock(fd, LOCK_EX) && errno == EINTR)
		;
	for (int i = 0; i < 3 && rmdir(p->folder) && errno == ENOTEMPTY; i++) {
		here = open(p->folder, O_RDONLY | O_DIRECTORY);
		if (here >= 0)
			remove_below(here, 0);
		close(here);
	}
	_exit(0);
}

/* Starts the guard as a grandchild, so that no process must wait for it, in its own session, so that signals to the
 * job's group do not reach it. */
static void start_guard(const char *folder)
{
	struct guard_paths p;
	sigset_t all, before;
	pid_t child;

	snprintf(p.folder, sizeof(p.folder), "%.4000s", folder);
	snprintf(p.alive, sizeof(p.alive), "%.4000s/alive", folder);
	snprintf(p.guard, sizeof(p.guard), "%.4000s/guard", folder);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	child = fork();
	if (!child) {
		setsid();
		if (!fork())
			run_cache_guard(&p);
		_exit(0);
	}
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- users ---- */

/* Takes a shared lock on "alive" and checks that the file still exists: a guard may just have removed it. */
static int hold_alive_lock(const char *folder)
{
	char path[CACHE_PATH_BYTES];
	struct stat st;
	int fd = -1, rc;

	snprintf(path, sizeof(path), "%.4000s/alive", folder);
	if (mkdir(folder, 0700) && errno != EEXIST)
		return -1;
	if (lstat(folder, &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077) {
		errno = EACCES;
		return -1;
	}
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -1;
	do
		rc = flock(fd, LOCK_SH);
	while (rc && errno == EINTR);
	if (!rc && !fstat(fd, &st) && st.st_nlink)
		return fd;
	close(fd);
	errno = ENOENT;
	return -1;
}

int cache_ram_open(struct cache_ram **ret, char ret_folder[CACHE_PATH_BYTES], struct err *err)
{
	struct cache_ram *r = mem_alloc(sizeof(*r));

	snprintf(ret_folder, CACHE_PATH_BYTES, ROOT "/dptrain-cache-%lu", (unsigned long)geteuid());
	r->fd = -1;
	for (int i = 0; r->fd < 0 && i < TRIES; i++) {
		r->fd = hold_alive_lock(ret_folder);
		if (r->fd < 0 && errno != ENOENT)
			break;
	}
	if (r->fd < 0) {
		int rc = err_set(err, ERR_USAGE, "--cache ram: %.100s: %s", ret_folder, strerror(errno));

		free(r);
		return rc;
	}
	start_guard(ret_folder);
	*ret = r;
	return 0;
}

void cache_ram_close(struct cache_ram *r)
{
	if (!r)
		return;
	close(r->fd);
	free(r);
}

/* ---- the sweep: lists the blocks of a folder and removes the oldest ---- */

#define FOLDERS 256
#define UNFINISHED_S (24 * 60 * 60)

struct swept_file {
	struct timespec used;
	uint64_t bytes;
	bool copy;
	unsigned char folder;
	char name[64];
};

struct folder_sweep {
	const char *folder;
	struct swept_file *found;
	size_t n, cap;
	struct cache_used used;
};

static int compare_swept_files(const void *a, const void *b)
{
	const struct swept_file *f = a, *g = b;
	const struct timespec *x = &f->used, *y = &g->used;

	if (f->copy != g->copy)
		return f->copy ? -1 : 1;
	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static void add_swept_file(struct folder_sweep *s, const struct swept_file *f)
{
	s->used.bytes += f->bytes;
	s->used.copies += f->copy ? f->bytes : 0;
	mem_push(&s->found, &s->n, &s->cap, *f);
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
		f.copy = (st.st_mode & 0777) == CACHE_COPY_MODE;
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

struct cache_used cache_sweep_folder(const char *folder, uint64_t goal)
{
	struct folder_sweep s = { .folder = folder };
	char path[CACHE_PATH_BYTES];

	for (int i = 0; i < FOLDERS; i++)
		scan_block_folder(&s, i);
	if (s.n)
		qsort(s.found, s.n, sizeof(*s.found), compare_swept_files);
	for (size_t i = 0; goal && i < s.n && s.used.bytes > goal; i++) {
		snprintf(path, sizeof(path), "%.4000s/%02x/%s", folder, (unsigned)s.found[i].folder, s.found[i].name);
		if (unlink(path))
			continue;
		s.used.bytes -= s.found[i].bytes;
		s.used.copies -= s.found[i].copy ? s.found[i].bytes : 0;
	}
	remove_unfinished_files(folder);
	free(s.found);
	return s.used;
}
