/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h: allocations with a common lifetime (a run's set-up, a request). One thread at a time.
 * Out of memory, functions return NULL; in programs they do not return (tracker/mem). */
#ifndef DPT_BASE_ARENA_H
#define DPT_BASE_ARENA_H

#include <stddef.h>

struct arena;

struct arena *arena_new(void);
void arena_free(struct arena *a); /* frees everything allocated from it; NULL is fine */

/* Zeroed, aligned to 16 bytes. */
void *arena_alloc(struct arena *a, size_t bytes);
void *arena_array(struct arena *a, size_t count, size_t bytes_each); /* checked multiplication */
char *arena_strdup(struct arena *a, const char *text);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
