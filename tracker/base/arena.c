/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c: an arena is a list of blocks that are freed together. */
#include "tracker/base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/nomem.h"
#include "tracker/base/round.h"

#define BLOCK_BYTES 16384u
#define ALIGN_BYTES 16u

struct arena_block {
	struct arena_block *next;
	size_t used;
	size_t cap;
	size_t pad; /* keeps bytes[] on a 16-byte boundary */
	char bytes[];
};

struct arena {
	struct arena_block *head;
};

struct arena *arena_new(void)
{
	struct arena *a = calloc(1, sizeof(*a));

	return a ? a : nomem(sizeof(*a));
}

void arena_free(struct arena *a)
{
	struct arena_block *b, *next;

	if (!a)
		return;
	for (b = a->head; b; b = next) {
		next = b->next;
		free(b);
	}
	free(a);
}

static struct arena_block *add_arena_block(struct arena *a, size_t bytes)
{
	size_t cap = bytes > BLOCK_BYTES / 4 ? bytes : BLOCK_BYTES;
	struct arena_block *b = calloc(1, sizeof(*b) + cap);

	if (!b)
		return nomem(sizeof(*b) + cap);
	b->cap = cap;
	if (a->head && cap == bytes) { /* a large dedicated block must not hide the free bytes of the head */
		b->next = a->head->next;
		a->head->next = b;
	} else {
		b->next = a->head;
		a->head = b;
	}
	return b;
}

void *arena_alloc(struct arena *a, size_t bytes)
{
	struct arena_block *b = a->head;
	void *at;

	if (bytes > SIZE_MAX / 2)
		return nomem(bytes);
	bytes = round_up_bytes(bytes, ALIGN_BYTES);
	if (!b || b->cap - b->used < bytes)
		b = add_arena_block(a, bytes);
	if (!b)
		return NULL;
	at = b->bytes + b->used;
	b->used += bytes;
	return at;
}

void *arena_array(struct arena *a, size_t count, size_t bytes_each)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, bytes_each, &bytes))
		return nomem(SIZE_MAX);
	return arena_alloc(a, bytes);
}

char *arena_strdup(struct arena *a, const char *text)
{
	size_t n = strlen(text) + 1;
	char *copy = arena_alloc(a, n);

	if (copy)
		memcpy(copy, text, n);
	return copy;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap, again;
	char *text = NULL;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	if (n >= 0)
		text = arena_alloc(a, (size_t)n + 1);
	if (text)
		vsnprintf(text, (size_t)n + 1, fmt, again);
	va_end(again);
	va_end(ap);
	return text;
}
