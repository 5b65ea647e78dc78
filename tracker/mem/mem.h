/* SPDX-License-Identifier: Apache-2.0 */
/* mem.h: memory in programs. No function returns NULL: without memory the program prints one line and ends. What is
 * freed with free() is made here; buffers, arenas and arrays of tracker/base end the program likewise, after mem_init.
 * libdptrack is built without this file: its functions return ERR_NOMEM. A backend's module has a copy of it.
 * Sizes from outside must be bounded before they get here. Memory that libraries allocate, mapped files and shared
 * memory are not under this rule: their failures are errors (ERR_NOMEM). */
#ifndef DPT_MEM_MEM_H
#define DPT_MEM_MEM_H

#include "tracker/base/array.h"

/* At the start of a program: a buffer (below its maximum) or an arena of tracker/base without memory ends it. */
void mem_init(void);

/* Prints "out of memory: cannot allocate N bytes" and ends the program with status 1, without running exit handlers. */
__attribute__((noreturn)) void mem_exhausted(size_t bytes);

void *mem_alloc(size_t bytes); /* not zeroed */
void *mem_zalloc(size_t bytes);
void *mem_array(size_t count, size_t bytes_each); /* zeroed; count may be 0; checked multiplication */
void *mem_realloc(void *at, size_t bytes);
void *mem_dup(const void *from, size_t bytes);
char *mem_strdup(const char *text);
char *mem_strndup(const char *text, size_t bytes_max);
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* array_reserve and array_push without a failure. */
#define mem_reserve(items, cap, want)                                                                                  \
	do {                                                                                                           \
		if (!array_reserve(items, cap, want))                                                                  \
			mem_exhausted((size_t)(want) * sizeof(**(items)));                                             \
	} while (0)

#define mem_push(items, n, cap, ...)                                                                                   \
	do {                                                                                                           \
		if (!array_push(items, n, cap, __VA_ARGS__))                                                           \
			mem_exhausted((size_t)*(n) * sizeof(**(items)));                                               \
	} while (0)

#endif
