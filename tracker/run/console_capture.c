/* console_capture.c: a line under way for each stream, and a message of those that are whole. */
#include "tracker/run/console_capture.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/utf8.h"
#include "tracker/event/event_console.h"
#include "tracker/event/event_encode.h"
#include "tracker/event/limits.h"

#define AGAIN_MS 1000 /* between two states of a line that is printed over */

struct under_way {
	char text[LIMIT_line_bytes];
	size_t n;
	bool returned;    /* a carriage return came: what follows is printed over it, unless the line ends here */
	int64_t again_ms; /* when a state was kept last */
};

struct console_capture {
	pthread_mutex_t lock;
	struct under_way stream[2];
	struct buf lines;
	int64_t begun_ms;  /* of the first of lines */
	uint64_t left_out; /* since a line said so */
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

static void keep(struct console_capture *p, int stream, struct event_text text, bool again)
{
	char clean[LIMIT_line_bytes + 1];
	size_t before = p->lines.len;
	int64_t now = clock_wall_ms();

	if (!before)
		p->begun_ms = now;
	text.len = utf8_copy(clean, sizeof(clean), text.at, text.len, NULL);
	text.at = clean;
	console_add(&p->lines, &(struct console_line){ stream, now - p->begun_ms, again, text });
	if (!buf_failed(&p->lines))
		return;
	p->lines.len = before;
	p->lines.failed = false;
	p->left_out++;
}

static void end_line(struct console_capture *p, int stream)
{
	struct under_way *u = &p->stream[stream - 1];

	keep(p, stream, (struct event_text){ u->text, u->n }, false);
	u->n = 0;
	u->returned = false;
}

/* The state of a progress bar that is printed over now. */
static void print_over(struct console_capture *p, int stream)
{
	struct under_way *u = &p->stream[stream - 1];
	int64_t now = clock_mono_ns() / 1000000;

	if (u->n && now - u->again_ms >= AGAIN_MS) {
		keep(p, stream, (struct event_text){ u->text, u->n }, true);
		u->again_ms = now;
	}
	u->n = 0;
	u->returned = false;
}

/* How many of n bytes hold whole characters, when the last one may be cut. */
static size_t whole_chars(const char *text, size_t n)
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

/* A line that is too long ends, and the rest is another one. */
static void cut_line(struct console_capture *p, int stream)
{
	struct under_way *u = &p->stream[stream - 1];
	size_t n = whole_chars(u->text, u->n), rest = u->n - n;

	u->n = n;
	end_line(p, stream);
	memmove(u->text, u->text + n, rest);
	u->n = rest;
}

static void add_piece(struct console_capture *p, int stream, const char *bytes, size_t n)
{
	struct under_way *u = &p->stream[stream - 1];

	while (n) {
		size_t room = sizeof(u->text) - u->n, part = n < room ? n : room;

		memcpy(u->text + u->n, bytes, part);
		u->n += part;
		bytes += part;
		n -= part;
		if (u->n == sizeof(u->text))
			cut_line(p, stream);
	}
}

bool console_capture_add(struct console_capture *p, int stream, const char *bytes, size_t n)
{
	struct under_way *u = &p->stream[stream == 2];
	bool whole;

	stream = stream == 2 ? 2 : 1;
	pthread_mutex_lock(&p->lock);
	while (n) {
		size_t part = 0;

		while (part < n && bytes[part] != '\n' && bytes[part] != '\r')
			part++;
		if (part && u->returned)
			print_over(p, stream);
		add_piece(p, stream, bytes, part);
		if (part < n && bytes[part] == '\n')
			end_line(p, stream);
		else if (part < n)
			u->returned = true;
		part += part < n;
		bytes += part;
		n -= part;
	}
	whole = !p->left_out;
	pthread_mutex_unlock(&p->lock);
	return whole;
}

void console_capture_take(struct console_capture *p, struct buf *to, bool end)
{
	char text[80];

	pthread_mutex_lock(&p->lock);
	for (int stream = 1; end && stream <= 2; stream++)
		if (p->stream[stream - 1].n)
			end_line(p, stream);
	if (p->lines.len)
		encode_console(to, (double)p->begun_ms / 1000, &p->lines);
	buf_reset(&p->lines);
	if (p->left_out) {
		snprintf(text, sizeof(text), "dptrack: %llu lines were left out here: too many at once",
			 (unsigned long long)p->left_out);
		p->left_out = 0;
		keep(p, 2, (struct event_text){ text, strlen(text) }, false);
	}
	pthread_mutex_unlock(&p->lock);
}
