/* SPDX-License-Identifier: Apache-2.0 */
/* mem.c: allocations that end the program when there is no memory. */
#include "tracker/mem/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/log.h"
#include "tracker/base/nomem.h"

void mem_init(void)
{
	nomem_set(mem_exhausted);
}

void mem_exhausted(size_t bytes)
{
	log_error("out of memory: cannot allocate %zu bytes", bytes);
	_exit(EXIT_FAILURE); /* exit handlers may wait for a lock that this thread holds */
}

static void *require_memory(void *at, size_t bytes)
{
	if (!at)
		mem_exhausted(bytes);
	return at;
}

void *mem_alloc(size_t bytes)
{
	return require_memory(malloc(bytes ? bytes : 1), bytes);
}

void *mem_zalloc(size_t bytes)
{
	return mem_array(1, bytes);
}

void *mem_array(size_t count, size_t bytes_each)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, bytes_each, &bytes))
		mem_exhausted(SIZE_MAX);
	return require_memory(calloc(1, bytes ? bytes : 1), bytes);
}

void *mem_realloc(void *at, size_t bytes)
{
	return require_memory(realloc(at, bytes ? bytes : 1), bytes);
}

void *mem_dup(const void *from, size_t bytes)
{
	void *copy = mem_alloc(bytes);

	if (bytes)
		memcpy(copy, from, bytes);
	return copy;
}

char *mem_strdup(const char *text)
{
	return mem_dup(text, strlen(text) + 1);
}

char *mem_strndup(const char *text, size_t bytes_max)
{
	const size_t bytes = strnlen(text, bytes_max);
	char *copy = mem_alloc(bytes + 1);

	memcpy(copy, text, bytes);
	copy[bytes] = '\0';
	return copy;
}

char *mem_printf(const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		mem_exhausted(strlen(fmt));
	va_end(ap);
	return text;
}
