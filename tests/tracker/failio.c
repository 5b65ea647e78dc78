/* SPDX-License-Identifier: Apache-2.0 */
/* failio.c: preloaded into a program, makes writes of journals, and allocations, fail. FAILIO is a list of words:
 *	short=N      every pwrite writes at most N bytes
 *	full=N,S     from the N-th byte on the disk is full, for S seconds (0: for ever)
 *	quota=N,S    the same for the user's quota
 *	eio=N        once, the write that reaches the N-th byte fails with EIO after a part of it
 *	syncs=S      every fdatasync takes S seconds
 *	syncfail     every fdatasync fails
 *	alloc=N      the N-th allocation fails, and every 40th after it */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long long written; /* bytes of all journals */
static double full_since;
static int eio_done;

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at);
ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at);

/* glibc's own names of its allocator. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t each);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static const char *setting(const char *name)
{
	const char *all = getenv("FAILIO"), *at = all ? strstr(all, name) : NULL;

	return at ? at + strlen(name) : NULL;
}

/* Returns how many of n bytes may be written; 0 with errno set if none. */
static size_t allowed(size_t n)
{
	const char *s = setting("short="), *quota = setting("quota="), *full = quota ? quota : setting("full=");
	const char *eio = setting("eio=");

	if (s && n > strtoul(s, NULL, 10))
		n = strtoul(s, NULL, 10);
	if (full) {
		char *end;
		long long limit = strtoll(full, &end, 10);
		double lasts = *end == ',' ? strtod(end + 1, NULL) : 0;

		if (full_since == 0 && written + (long long)n > limit)
			full_since = now_s();
		if (full_since > 0 && (lasts == 0 || now_s() - full_since < lasts)) {
			errno = quota ? EDQUOT : ENOSPC;
			return written < limit ? (size_t)(limit - written) : 0;
		}
	}
	if (eio && !eio_done && written + (long long)n > strtoll(eio, NULL, 10)) {
		eio_done = written >= strtoll(eio, NULL, 10);
		errno = EIO;
		return eio_done ? 0 : (size_t)(strtoll(eio, NULL, 10) - written);
	}
	return n;
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at)
{
	static ssize_t (*real)(int, const void *, size_t, off64_t);
	ssize_t done;

	pthread_mutex_lock(&lock);
	if (!real)
		real = (ssize_t (*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
	n = allowed(n);
	done = n ? real(fd, bytes, n, at) : -1;
	if (done > 0)
		written += done;
	pthread_mutex_unlock(&lock);
	return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
	return pwrite64(fd, bytes, n, at);
}

int fdatasync(int fd)
{
	const char *s = setting("syncs=");
	struct timespec t = { 0, 0 };

	(void)fd;
	if (s) {
		double seconds = strtod(s, NULL);

		t.tv_sec = (time_t)seconds;
		t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
		nanosleep(&t, NULL);
	}
	errno = EIO;
	return setting("syncfail") ? -1 : 0;
}

static int alloc_fails(void)
{
	static atomic_long calls;
	static long at = -1;
	long call;

	if (at < 0)
		at = setting("alloc=") ? strtol(setting("alloc="), NULL, 10) : 0;
	call = ++calls;
	return at && call >= at && (call - at) % 40 == 0;
}

void *malloc(size_t n)
{
	return alloc_fails() ? (errno = ENOMEM, NULL) : __libc_malloc(n);
}

void *calloc(size_t n, size_t each)
{
	return alloc_fails() ? (errno = ENOMEM, NULL) : __libc_calloc(n, each);
}

void *realloc(void *p, size_t n)
{
	return alloc_fails() ? (errno = ENOMEM, NULL) : __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	return alloc_fails() ? (errno = ENOMEM, NULL) : __libc_memalign(align, n);
}
