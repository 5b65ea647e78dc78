/* SPDX-License-Identifier: Apache-2.0 */
/* buf.c: the growing byte buffer. */
#include "tracker/base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/nomem.h"

void buf_init(struct buf *b, size_t max_bytes)
{
	*b = (struct buf){ .max = max_bytes };
}

void buf_done(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ .max = b->max };
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->failed = false;
	if (b->data)
		b->data[0] = '\0';
}

bool buf_failed(const struct buf *b)
{
	return b->failed;
}

char *buf_reserve(struct buf *b, size_t n)
{
	size_t cap = b->cap ? b->cap : 64;
	char *grown;

	if (b->failed || n > b->max - b->len) {
		b->failed = true;
		return NULL;
	}
	if (b->data && b->len + n < b->cap)
		return b->data + b->len;
	while (cap < b->len + n + 1)
		cap *= 2;
	grown = realloc(b->data, cap);
	if (!grown) {
		nomem(cap);
		b->failed = true;
		return NULL;
	}
	b->data = grown;
	b->cap = cap;
	return b->data + b->len;
}

void buf_add(struct buf *b, const void *bytes, size_t n)
{
	char *at = buf_reserve(b, n);

	if (!at)
		return;
	if (n)
		memcpy(at, bytes, n);
	b->len += n;
	b->data[b->len] = '\0';
}

void buf_adds(struct buf *b, const char *text)
{
	buf_add(b, text, strlen(text));
}

void buf_addc(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_addvf(struct buf *b, const char *fmt, va_list ap)
{
	va_list again;
	char *at;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	at = n < 0 ? NULL : buf_reserve(b, (size_t)n);
	if (at) {
		vsnprintf(at, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	} else {
		b->failed = true;
	}
	va_end(again);
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_addvf(b, fmt, ap);
	va_end(ap);
}

void buf_add_u32le(struct buf *b, uint32_t v)
{
	unsigned char bytes[4] = { v & 0xff, v >> 8 & 0xff, v >> 16 & 0xff, v >> 24 };

	buf_add(b, bytes, sizeof(bytes));
}

void buf_add_u64le(struct buf *b, uint64_t v)
{
	buf_add_u32le(b, (uint32_t)v);
	buf_add_u32le(b, (uint32_t)(v >> 32));
}

void buf_consume(struct buf *b, size_t n)
{
	if (!n)
		return;
	memmove(b->data, b->data + n, b->len - n);
	b->len -= n;
	b->data[b->len] = '\0';
}

char *buf_take(struct buf *b, size_t *ret_len)
{
	char *data;

	if (!buf_reserve(b, 0))
		return NULL;
	data = b->data;
	data[b->len] = '\0';
	if (ret_len)
		*ret_len = b->len;
	*b = (struct buf){ .max = b->max };
	return data;
}
