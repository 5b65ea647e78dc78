/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_count.c: a preload library that counts the allocations of the process of at least $ALLOC_COUNT_LEAST bytes;
 * with $ALLOC_COUNT_OF ("dptrain libc.") only those by code in files whose name begins with one of these words. It
 * writes the count to $ALLOC_COUNT_FILE.<pid> at exit, as one number. A test runs twice with different numbers of
 * steps: the difference is what steps allocate. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic long count;
static size_t least;
static const char *callers; /* NULL: all */

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t each);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

__attribute__((constructor)) static void start(void)
{
	const char *text = getenv("ALLOC_COUNT_LEAST");

	callers = getenv("ALLOC_COUNT_OF");
	least = text ? (size_t)strtoul(text, NULL, 10) : 0;
}

static int is_asked_by(const void *code)
{
	const char *word = callers, *name;
	Dl_info where;

	if (!word)
		return 1;
	if (!dladdr(code, &where))
		return 0;
	name = strrchr(where.dli_fname, '/');
	name = name ? name + 1 : where.dli_fname;
	while (*word) {
		const size_t n = strcspn(word, " ");

		if (n && !strncmp(name, word, n))
			return 1;
		word += n + (word[n] == ' ');
	}
	return 0;
}

static void note_of(size_t bytes, const void *code)
{
	if (bytes >= least && is_asked_by(code))
		atomic_fetch_add(&count, 1);
}

#define note(bytes) note_of(bytes, __builtin_return_address(0))

#define EXPORT __attribute__((visibility("default")))

EXPORT void *malloc(size_t n)
{
	note(n);
	return __libc_malloc(n);
}

EXPORT void *calloc(size_t n, size_t each)
{
	note(n * each);
	return __libc_calloc(n, each);
}

EXPORT void *realloc(void *p, size_t n)
{
	note(n);
	return __libc_realloc(p, n);
}

EXPORT void *aligned_alloc(size_t align, size_t n)
{
	note(n);
	return __libc_memalign(align, n);
}

EXPORT void *memalign(size_t align, size_t n)
{
	note(n);
	return __libc_memalign(align, n);
}

EXPORT int posix_memalign(void **ret, size_t align, size_t n)
{
	note(n);
	*ret = __libc_memalign(align, n);
	return *ret ? 0 : 12;
}

EXPORT void *mmap(void *at, size_t n, int protect, int flags, int fd, off_t offset)
{
	note(n);
	return (void *)syscall(SYS_mmap, at, n, protect, flags, fd, offset);
}

/* The ranks exit by _exit: the count is written there. */
EXPORT void _exit(int code)
{
	void (*next)(int) = (void (*)(int))dlsym(RTLD_NEXT, "_Exit");
	const char *base = getenv("ALLOC_COUNT_FILE");
	char path[512];
	FILE *f;
	long n = atomic_load(&count);

	if (base) {
		snprintf(path, sizeof(path), "%s.%d", base, (int)getpid());
		f = fopen(path, "w");
		if (f) {
			fprintf(f, "%ld\n", n);
			fclose(f);
		}
	}
	next(code);
	__builtin_unreachable();
}
