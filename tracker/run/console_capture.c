/* SPDX-License-Identifier: Apache-2.0 */
/* console_capture.c: console capture: a partial line for each stream, and a message of complete lines. */
#include "tracker/run/run_inside.h"

#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/clock.h"
#include "tracker/base/utf8.h"

#define OVERWRITE_MS 1000 /* between two recorded states of a line that is overwritten */

struct partial_line {
	char text[LIMIT_line_bytes];
	size_t n;
	bool returned;	 /* after a carriage return: following text overwrites the line, unless it ends here */
	int64_t kept_ms; /* time of the last recorded state */
};

struct console_capture {
	pthread_mutex_t lock;
	struct partial_line stream[2];
	struct buf lines;
	int64_t first_ms; /* time of the first line */
	uint64_t dropped; /* lines lost since the last notice */
};

struct console_capture *console_capture_new(void)
{
	struct console_capture *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	buf_init(&p->lines, LIMIT_console_queued_bytes);
	return p;
}

void console_capture_free(struct console_capture *p)
{
	if (!p)
		return;
	pthread_mutex_destroy(&p->lock);
	buf_done(&p->lines);
	free(p);
}

static void store_console_line(struct console_capture *p, int stream, struct event_text text, bool again)
{
	char clean[LIMIT_line_bytes + 1];
	size_t before = p->lines.len;
	int64_t now = clock_wall_ms();

	if (!before)
		p->first_ms = now;
	text.len = utf8_copy(clean, sizeof(clean), text.at, text.len, NULL);
	text.at = clean;
	console_add(&p->lines, &(struct console_line){ stream, now - p->first_ms, again, text });
	if (!buf_failed(&p->lines))
		return;
	p->lines.len = before;
	p->lines.failed = false;
	p->dropped++;
}

static void finish_line(struct console_capture *p, int stream)
{
	struct partial_line *u = &p->stream[stream - 1];

	store_console_line(p, stream, (struct event_text){ u->text, u->n }, false);
	u->n = 0;
	u->returned = false;
}

/* Records the state of a progress bar that is being overwritten, at most once per OVERWRITE_MS. */
static void overwrite_line(struct console_capture *p, int stream)
{
	struct partial_line *u = &p->stream[stream - 1];
	int64_t now = clock_mono_ns() / 1000000;

	if (u->n && now - u->kept_ms >= OVERWRITE_MS) {
		store_console_line(p, stream, (struct event_text){ u->text, u->n }, true);
		u->kept_ms = now;
	}
	u->n = 0;
	u->returned = false;
}

/* Returns how many of the n bytes are whole characters; the last one may be incomplete. */
static size_t count_whole_chars(const char *text, size_t n)
{
	for (size_t back = 1; back <= 3 && back < n; back++) {
		unsigned char c = (unsigned char)text[n - back];

		if (c >= 0xc0)
			return utf8_step((const unsigned char *)text + n - back, back) ? n : n - back;
		if (c < 0x80)
			break;
	}
	return n;
}

/* Ends a line that is too long; the rest starts a new one. */
static void split_line(struct console_capture *p, int stream)
{
	struct partial_line *u = &p->stream[stream - 1];
	size_t n = count_whole_chars(u->text, u->n), rest = u->n - n;

	u->n = n;
	finish_line(p, stream);
	memmove(u->text, u->text + n, rest);
	u->n = rest;
}

static void append_piece(struct console_capture *p, int stream, const char *bytes, size_t n)
{
	struct partial_line *u = &p->stream[stream - 1];

	while (n) {
		size_t room = sizeof(u->text) - u->n, part = n < room ? n : room;

		memcpy(u->text + u->n, bytes, part);
		u->n += part;
		bytes += part;
		n -= part;
		if (u->n == sizeof(u->text))
			split_line(p, stream);
	}
}

bool console_capture_add(struct console_capture *p, int stream, const char *bytes, size_t n)
{
	struct partial_line *u = &p->stream[stream == 2];
	bool whole;

	stream = stream == 2 ? 2 : 1;
	pthread_mutex_lock(&p->lock);
	while (n) {
		size_t part = 0;

		while (part < n && bytes[part] != '\n' && bytes[part] != '\r')
			part++;
		if (part && u->returned)
			overwrite_line(p, stream);
		append_piece(p, stream, bytes, part);
		if (part < n && bytes[part] == '\n')
			finish_line(p, stream);
		else if (part < n)
			u->returned = true;
		part += part < n;
		bytes += part;
		n -= part;
	}
	whole = !p->dropped;
	pthread_mutex_unlock(&p->lock);
	return whole;
}

void console_capture_take(struct console_capture *p, struct buf *to, bool end)
{
	char text[80];

	pthread_mutex_lock(&p->lock);
	for (int stream = 1; end && stream <= 2; stream++)
		if (p->stream[stream - 1].n)
			finish_line(p, stream);
	if (p->lines.len)
		encode_console(to, (double)p->first_ms / 1000, &p->lines);
	buf_reset(&p->lines);
	if (p->dropped) {
		snprintf(text, sizeof(text), "dptrack: %llu lines were dropped here: too many at once",
			 (unsigned long long)p->dropped);
		p->dropped = 0;
		store_console_line(p, 2, (struct event_text){ text, strlen(text) }, false);
	}
	pthread_mutex_unlock(&p->lock);
}
