/* conns.c: deadlines of connections. Knows sockets, not HTTP. */
#include "web/server/conns.h"

#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
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
	bool closed; /* shut down already */
	bool late;   /* when last looked at */
	uint64_t taken;    /* bytes of replies that the peer has, when last looked at */
	double taken_at_s; /* 0: not looked at in this phase */
};

struct conns {
	pthread_mutex_t lock;
	struct conn *oldest, *newest; /* by the start of their phase */
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

static void conns_link(struct conns *t, struct conn *c)
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

static void conns_unlink(struct conns *t, struct conn *c)
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
	conns_link(t, c);
	t->count++;
	pthread_mutex_unlock(&t->lock);
	return c;
}

void conns_remove(struct conns *t, struct conn *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&t->lock);
	conns_unlink(t, c);
	t->count--;
	pthread_mutex_unlock(&t->lock);
	free(c);
}

void conns_phase(struct conns *t, struct conn *c, enum conn_phase phase)
{
	if (!c)
		return;
	pthread_mutex_lock(&t->lock);
	/* the head of a first request is timed from the connection's start */
	if (!(c->phase == CONN_FRESH && phase == CONN_HEAD)) {
		conns_unlink(t, c);
		conns_link(t, c);
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

/* A reply that its client takes in drops, or not at all, holds its place and its bytes. Replies that wait for us, and
 * event streams with nothing to say, have nothing on the way. */
static bool reply_stuck(struct conn *c, double now)
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

/* The library, which waits for edges, can miss that a client went away in the middle of its request. */
static bool peer_left(const struct conn *c)
{
	char byte;
	ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return !n || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* It sent what we have not got round to read: on a starved machine a deadline may pass that way. */
static bool unread(const struct conn *c, double age_s)
{
	int n = 0;

	return age_s < CONNS_UNREAD_S && !ioctl(c->fd, SIOCINQ, &n) && n > 0;
}

/* What is wrong must be so at two looks: what came last may be read, and not yet noted, at the first. */
static bool conn_late(struct conn *c, double now, double age_s)
{
	bool before = c->late;

	switch (c->phase) {
	case CONN_FRESH:
	case CONN_HEAD:
		c->late = (age_s > CONNS_HEAD_S && !unread(c, age_s)) || peer_left(c);
		break;
	case CONN_IDLE:
		c->late = age_s > CONNS_IDLE_S && !unread(c, age_s);
		break;
	case CONN_BODY:
		c->late = (age_s > CONNS_BODY_GRACE_S && c->body_bytes < CONNS_BODY_BYTES_PER_S * age_s &&
			   !unread(c, age_s)) ||
			  peer_left(c);
		break;
	case CONN_BUSY:
		return age_s > CONNS_REPLY_WINDOW_S && reply_stuck(c, now);
	}
	return before && c->late;
}

static void conn_close(struct conn *c)
{
	if (!c->closed)
		shutdown(c->fd, SHUT_RDWR);
	c->closed = true;
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

		if (conn_late(c, now, age) || (excess && headless && age > CONNS_PRESSED_S)) {
			conn_close(c);
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
			conn_close(c);
	pthread_mutex_unlock(&t->lock);
}
