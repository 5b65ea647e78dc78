/* SPDX-License-Identifier: Apache-2.0 */
/* buf.h: the one growing byte buffer, for every builder of text or bytes.
 * An append that fails (beyond the maximum of buf_init, or out of memory) marks the buffer as failed. Later appends do
 * nothing, so that callers check once, at the end, with buf_failed. Programs (tracker/mem) fail only at the maximum. */
#ifndef DPT_BASE_BUF_H
#define DPT_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data; /* NUL-terminated unless NULL; len excludes the NUL */
	size_t len;
	size_t cap;
	size_t max; /* appends beyond this fail */
	bool failed;
};

void buf_init(struct buf *b, size_t max_bytes);
void buf_done(struct buf *b);  /* frees the bytes; b may be used again after buf_init */
void buf_reset(struct buf *b); /* length 0, not failed; keeps the memory */
bool buf_failed(const struct buf *b);

void buf_add(struct buf *b, const void *bytes, size_t n);
void buf_adds(struct buf *b, const char *text);
void buf_addc(struct buf *b, char c);
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_addvf(struct buf *b, const char *fmt, va_list ap);
void buf_add_u32le(struct buf *b, uint32_t v);
void buf_add_u64le(struct buf *b, uint64_t v);

/* Reserves n bytes at the returned address (NULL when failed); the caller writes there, then adds to len. */
char *buf_reserve(struct buf *b, size_t n);

/* Drops the first n bytes (n <= len). */
void buf_consume(struct buf *b, size_t n);

/* Transfers the bytes to the caller (free()); NULL when failed. The buffer is empty afterwards. */
char *buf_take(struct buf *b, size_t *ret_len);

#endif
