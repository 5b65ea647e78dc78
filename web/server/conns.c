/* SPDX-License-Identifier: Apache-2.0 */
/* conns.c: deadlines of connections. Knows sockets, not HTTP. The list is ordered by the start of each connection's
 * phase, so the oldest are at its head. */
#include "web/server/exchange.h"

#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "tracker/base/clock.h"

#define CONNS_HEAD_S 10.0
#define CONNS_IDLE_S 60.0
#define CONNS_UNREAD_S 120.0
#define CONNS_BODY_GRACE_S 10.0
#define CONNS_BODY_BYTES_PER_S 1024.0
#define CONNS_PRESSED_S 1.0
#define CONNS_REPLY_WINDOW_S 15.0
#define CONNS_REPLY_BYTES_PER_S 1024.0

struct conn {
	struct conn *next, *prev;
	int fd;
	enum conn_phase phase;
	double since_s;
	double body_bytes;
	bool closed;	   /* set by shut_conn_down */
	bool late;	   /* was late at the last check */
	uint64_t taken;	   /* reply bytes that the client had acknowledged at the last check */
	double taken_at_s; /* time of that check; 0: not checked in this phase */
};

struct conns {
	pthread_mutex_t lock;
	struct conn *oldest, *newest; /* ordered by the start of their phase */
	size_t count, limit;
};

struct conns *conns_new(size_t limit)
{
	struct conns *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	pthread_mutex_init(&t->lock, NULL);
	t->limit = limit;
	return t;
}

void conns_free(struct conns *t)
{
	if (!t)
		return;
	while (t->oldest) {
		struct conn *c = t->oldest;

		t->oldest = c->next;
		free(c);
	}
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static void append_conn(struct conns *t, struct conn *c)
{
	c->since_s = clock_mono_s();
	c->next = NULL;
	c->prev = t->newest;
	if (t->newest)
		t->newest->next = c;
	else
		t->oldest = c;
	t->newest = c;
}

static void unlink_conn(struct conns *t, struct conn *c)
{
	if (c->prev)
		c->prev->next = c->next;
	else
		t->oldest = c->next;
	if (c->next)
		c->next->prev = c->prev;
	else
		t->newest = c->prev;
}

struct conn *conns_add(struct conns *t, int fd)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->fd = fd;
	pthread_mutex_lock(&t->lock);
	append_conn(t, c);
	t->count++;
	pthread_mutex_unlock(&t->lock);
	return c;
}

void conns_remove(struct conns *t, struct conn *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&t->lock);
	unlink_conn(t, c);
	t->count--;
	pthread_mutex_unlock(&t->lock);
	free(c);
}

/* libmicrohttpd uses edge-triggered epoll and can miss that a client left in the middle of its request, or closed its
 * sending side with it. A request that the library has read already changes the phase before the second check. */
static bool has_client_left(const struct conn *c)
{
	char byte;
	ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return !n || (n < 0 && errno != EAGAIN && errno != EINTR);
}

static void shut_conn_down(struct conn *c)
{
	if (!c->closed)
		shutdown(c->fd, SHUT_RDWR);
	c->closed = true;
}

void conns_phase(struct conns *t, struct conn *c, enum conn_phase phase)
{
	if (!c)
		return;
	pthread_mutex_lock(&t->lock);
	/* the head of a first request is timed from the start of the connection */
	if (!(c->phase == CONN_FRESH && phase == CONN_HEAD)) {
		unlink_conn(t, c);
		append_conn(t, c);
		c->phase = phase;
		c->body_bytes = 0;
		c->taken_at_s = 0;
		c->late = false;
	}
	pthread_mutex_unlock(&t->lock);
}

void conns_body(struct conns *t, struct conn *c, size_t bytes)
{
	if (!c)
		return;
	pthread_mutex_lock(&t->lock);
	c->body_bytes += (double)bytes;
	pthread_mutex_unlock(&t->lock);
}

/* Returns true if the client reads its reply slower than the minimum rate, or not at all. A connection with nothing in
 * its send queue is not stuck: the server has still to answer, or an event stream is idle. */
static bool is_reply_stuck(struct conn *c, double now)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);
	int waiting = 0;
	uint64_t before = c->taken;
	double since = c->taken_at_s;

	if (since > 0 && now - since < CONNS_REPLY_WINDOW_S)
		return false;
	memset(&info, 0, sizeof(info));
	if (ioctl(c->fd, SIOCOUTQ, &waiting) || getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return false;
	c->taken = info.tcpi_bytes_acked;
	c->taken_at_s = now;
	return since > 0 && waiting > 0 && (double)(c->taken - before) < CONNS_REPLY_BYTES_PER_S * (now - since);
}

/* Returns true if the client sent bytes that the server has not read yet: on a busy machine the delay may be the
 * server's. */
static bool has_unread_bytes(const struct conn *c, double age_s)
{
	int n = 0;

	return age_s < CONNS_UNREAD_S && !ioctl(c->fd, SIOCINQ, &n) && n > 0;
}

/* A connection is late only after two checks in a row: bytes that just arrived may be counted after the first check. */
static bool is_conn_late(struct conn *c, double now, double age_s)
{
	bool before = c->late;

	switch (c->phase) {
	case CONN_FRESH:
	case CONN_HEAD:
		c->late = (age_s > CONNS_HEAD_S && !has_unread_bytes(c, age_s)) || has_client_left(c);
		break;
	case CONN_IDLE:
		c->late = (age_s > CONNS_IDLE_S && !has_unread_bytes(c, age_s)) || has_client_left(c);
		break;
	case CONN_BODY:
		c->late = (age_s > CONNS_BODY_GRACE_S && c->body_bytes < CONNS_BODY_BYTES_PER_S * age_s &&
			   !has_unread_bytes(c, age_s)) ||
			  has_client_left(c);
		break;
	case CONN_BUSY:
		return age_s > CONNS_REPLY_WINDOW_S && is_reply_stuck(c, now);
	}
	return before && c->late;
}

void conns_tick(struct conns *t)
{
	double now = clock_mono_s();
	size_t excess, keep;
	struct conn *c;

	pthread_mutex_lock(&t->lock);
	keep = t->limit - t->limit / 4;
	excess = t->count > keep ? t->count - keep : 0;
	for (c = t->oldest; c; c = c->next) {
		double age = now - c->since_s;
		bool headless = c->phase < CONN_BODY;

		if (is_conn_late(c, now, age) || (excess && headless && age > CONNS_PRESSED_S)) {
			shut_conn_down(c);
			excess -= excess > 0;
		}
	}
	pthread_mutex_unlock(&t->lock);
}

void conns_shutdown(struct conns *t, bool busy_too)
{
	struct conn *c;

	pthread_mutex_lock(&t->lock);
	for (c = t->oldest; c; c = c->next)
		if (busy_too || c->phase < CONN_BODY)
			shut_conn_down(c);
	pthread_mutex_unlock(&t->lock);
}
