/* SPDX-License-Identifier: Apache-2.0 */
/* framing.c: follows the bytes of each connection as libmicrohttpd reads them, and judges the framing of bodies in
 * chunks as strictly as the gate judges heads (RFC 9112, 7.1). The library accepts a bare LF, any byte in an extension,
 * and more, and does not pass the framing on; but it reads through recv and gnutls_record_recv, which
 * this file overrides. A connection is read by one thread only. */
#include "config.h"

#include "tracker/mem/mem.h"
#include "web/server/exchange.h"
#include "web/server/override.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#ifdef HAVE_GNUTLS
#include <gnutls/gnutls.h>
#endif

enum { FRAMING_FDS = 1 << 20, LINE_MAX_BYTES = 128, SIZE_DIGITS_MAX = 15, EXTENSION_MAX = 1024 };

struct framing {
	bool tls, bad;
	enum { IN_HEAD, IN_BODY, IN_SIZE, IN_EXTENSION, IN_DATA, AFTER_DATA, IN_TRAILER, IN_FIELD, BEFORE_LF } state;
	enum { LF_OF_SIZE, LF_OF_DATA, LF_OF_FIELD, LF_OF_END } lf; /* what the LF ends, in state BEFORE_LF */
	char line[LINE_MAX_BYTES];				     /* of the head: its beginning */
	size_t n;						     /* bytes of the line, digits or extension */
	bool begun, chunked;					     /* the head has a line; it says chunked */
	uint64_t left;						     /* bytes of the body, or the chunk */
	unsigned opened, ended;					     /* requests */
};

static _Atomic(struct framing *) framings[FRAMING_FDS];

static struct framing *find_framing(int fd)
{
	return fd >= 0 && fd < FRAMING_FDS ? atomic_load(&framings[fd]) : NULL;
}

void framing_begin(int fd, bool tls)
{
	struct framing *f;

	if (fd < 0 || fd >= FRAMING_FDS)
		return;
	f = mem_zalloc(sizeof(*f));
	f->tls = tls;
	atomic_store(&framings[fd], f);
}

void framing_end(int fd)
{
	if (fd >= 0 && fd < FRAMING_FDS)
		free(atomic_exchange(&framings[fd], NULL));
}

void framing_open(int fd)
{
	struct framing *f = find_framing(fd);

	if (f)
		f->opened++;
}

bool framing_good(int fd, bool complete)
{
	const struct framing *f = find_framing(fd);

#ifndef HAVE_GNUTLS
	if (f && f->tls)
		return true;
#endif
	return f && !f->bad && (!complete || f->ended >= f->opened);
}

static void end_request(struct framing *f)
{
	f->ended++;
	f->state = IN_HEAD;
	f->begun = f->chunked = false;
	f->n = 0;
	f->left = 0;
}

/* Sets the length of the body, as the gate reads it. */
static void read_length(struct framing *f, const char *s)
{
	s += strspn(s, " \t");
	for (f->left = 0; *s >= '0' && *s <= '9' && f->left < UINT64_MAX / 100; s++)
		f->left = f->left * 10 + (uint64_t)(*s - '0');
}

static void end_head_line(struct framing *f)
{
	size_t n = f->n < LINE_MAX_BYTES ? f->n : LINE_MAX_BYTES - 1;

	f->line[n] = '\0';
	if (n && f->line[n - 1] == '\r')
		f->line[--n] = '\0';
	f->n = 0;
	if (n) {
		f->begun = true;
		f->chunked = f->chunked || !strncasecmp(f->line, "Transfer-Encoding:", 18);
		if (!strncasecmp(f->line, "Content-Length:", 15))
			read_length(f, f->line + 15);
	} else if (f->begun) {
		f->state = f->chunked ? IN_SIZE : IN_BODY;
		if (f->chunked)
			f->left = 0;
		else if (!f->left)
			end_request(f);
	}
}

static int hex_value(char ch)
{
	return ch >= '0' && ch <= '9' ? ch - '0' : (ch | 32) >= 'a' && (ch | 32) <= 'f' ? (ch | 32) - 'a' + 10 : -1;
}

static void expect_lf(struct framing *f, int lf)
{
	f->state = BEFORE_LF;
	f->lf = lf;
}

static void end_framing_line(struct framing *f)
{
	f->n = 0;
	if (f->lf == LF_OF_END)
		end_request(f);
	else if (f->lf == LF_OF_DATA)
		f->state = IN_SIZE;
	else
		f->state = f->lf == LF_OF_SIZE && f->left ? IN_DATA : IN_TRAILER;
}

static void feed_size(struct framing *f, char ch)
{
	int digit = hex_value(ch);

	if (digit >= 0 && f->n < SIZE_DIGITS_MAX) {
		f->left = f->left * 16 + (uint64_t)digit;
		f->n++;
	} else if (f->n && ch == '\r') {
		expect_lf(f, LF_OF_SIZE);
	} else if (f->n && ch == ';') {
		f->state = IN_EXTENSION;
		f->n = 0;
	} else {
		f->bad = true;
	}
}

static void feed_extension(struct framing *f, char ch)
{
	if (f->n && ch == '\r')
		expect_lf(f, LF_OF_SIZE);
	else if (f->n++ == EXTENSION_MAX || !(f->n > 1 ? gate_is_text(ch) : gate_is_token(&ch, 1)))
		f->bad = true;
}

static void feed_trailer(struct framing *f, char ch)
{
	if (f->state == IN_TRAILER && ch == '\r' && !f->n)
		expect_lf(f, LF_OF_END);
	else if (f->state == IN_TRAILER && ch == ':' && f->n)
		f->state = IN_FIELD;
	else if (f->state == IN_FIELD && ch == '\r')
		expect_lf(f, LF_OF_FIELD);
	else if (f->state == IN_TRAILER ? !gate_is_token(&ch, 1) : !gate_is_text(ch))
		f->bad = true;
	else
		f->n++;
}

static void feed_framing_byte(struct framing *f, char ch)
{
	if (f->state == IN_HEAD) {
		if (ch == '\n')
			end_head_line(f);
		else if (f->n++ < LINE_MAX_BYTES - 1)
			f->line[f->n - 1] = ch;
	} else if (f->state == AFTER_DATA || f->state == BEFORE_LF) {
		f->bad = ch != (f->state == BEFORE_LF ? '\n' : '\r');
		if (f->state == BEFORE_LF)
			end_framing_line(f);
		else
			expect_lf(f, LF_OF_DATA);
	} else if (f->state == IN_SIZE) {
		feed_size(f, ch);
	} else if (f->state == IN_EXTENSION) {
		feed_extension(f, ch);
	} else {
		feed_trailer(f, ch);
	}
}

static void feed_framing(struct framing *f, const char *data, size_t n)
{
	while (n && !f->bad) {
		size_t skip = f->left < n ? (size_t)f->left : n;

		if (f->state != IN_BODY && f->state != IN_DATA) {
			feed_framing_byte(f, *data++);
			n--;
			continue;
		}
		data += skip;
		n -= skip;
		f->left -= skip;
		if (!f->left && f->state == IN_BODY)
			end_request(f);
		else if (!f->left)
			f->state = AFTER_DATA;
	}
}

__attribute__((visibility("default"))) ssize_t recv(int fd, void *to, size_t max, int flags)
{
	ssize_t n = recvfrom(fd, to, max, flags, NULL, NULL);
	struct framing *f = n > 0 && !(flags & MSG_PEEK) ? find_framing(fd) : NULL;

	if (f && !f->tls)
		feed_framing(f, to, (size_t)n);
	return n;
}

#ifdef HAVE_GNUTLS

OVERRIDES(gnutls_record_recv);
static ssize_t (*record_next)(gnutls_session_t session, void *to, size_t max);

static void find_library_record(void)
{
	record_next = OVERRIDDEN(gnutls_record_recv);
}

__attribute__((visibility("default"))) ssize_t gnutls_record_recv(gnutls_session_t session, void *to, size_t max)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct framing *f;
	ssize_t n;

	pthread_once(&once, find_library_record);
	n = record_next(session, to, max);
	f = n > 0 ? find_framing(gnutls_transport_get_int(session)) : NULL;
	if (f && f->tls)
		feed_framing(f, to, (size_t)n);
	return n;
}

#endif
