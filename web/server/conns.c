/* SPDX-License-Identifier: Apache-2.0 */
/* conns.c: deadlines of connections, and who leaves when places grow scarce. Knows sockets, not HTTP. The list is
 * ordered by the start of each connection's phase, so the oldest are at its head. */
#include "web/server/exchange.h"

#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <math.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "tracker/base/clock.h"
#include "tracker/mem/mem.h"

#define CONNS_HEAD_S 10.0
#define CONNS_IDLE_S 60.0
#define CONNS_UNREAD_S 120.0
#define CONNS_BODY_GRACE_S 10.0
#define CONNS_BODY_BYTES_PER_S 1024.0
#define CONNS_REFUSED_S 5.0
#define CONNS_RESERVED 8 /* one place in eight is for /health and /ready */
#define CONNS_PATIENCE_S 0.5
#define CONNS_READING_S 0.05 /* bytes that a worker has taken from the socket may not be parsed yet */
#define CONNS_SLOW_BYTES_PER_S 32768.0
#define CONNS_RATE_WINDOW_S 1.0
#define CONNS_CLIENTS 4096
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
	bool reserved;	   /* has one of the reserved places */
	uint64_t taken;	   /* reply bytes that the client had acknowledged at the last check */
	double taken_at_s; /* time of that check; 0: not checked in this phase */
	unsigned client;   /* index of its address or token in conns.burden */
	enum conn_cost { COST_NONE, COST_IDLE, COST_SLOW, COST_REFUSED } cost; /* at the last tick */
	double moved, moved_at_s; /* bytes of body or reply at the start of the rate's window; 0: none began */
	double rate;		  /* bytes/s in the last window; INFINITY: no delay is the client's; -1: unknown */
};

struct conns {
	pthread_mutex_t lock;
	struct conn *oldest, *newest; /* ordered by the start of their phase */
	size_t count, closing, keep;
	bool crowded; /* unfinished requests hold a quarter of the places: idle connections are not closed for them */
	uint64_t seed;
	unsigned burden[CONNS_CLIENTS];	    /* sum of the costs of a client's connections at the last tick */
	unsigned unfinished[CONNS_CLIENTS]; /* its connections that have not sent a whole request */
};

/* A slow connection counts as four idle ones: an idle one is of use to its client, and closing it costs little. */
static const unsigned cost_weight[] = { [COST_IDLE] = 1, [COST_SLOW] = 4, [COST_REFUSED] = 4 };

struct conns *conns_new(size_t limit)
{
	struct conns *t = mem_zalloc(sizeof(*t));

	pthread_mutex_init(&t->lock, NULL);
	t->keep = limit - limit / CONNS_RESERVED;
	if (getrandom(&t->seed, sizeof(t->seed), 0) < 0)
		t->seed = (uintptr_t)t;
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

/* libmicrohttpd uses edge-triggered epoll and can miss that a client left in the middle of its request, or closed its
 * sending side with it. A request that the library has read already changes the phase before the second check. */
static bool has_client_left(const struct conn *c)
{
	char byte;
	ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return !n || (n < 0 && errno != EAGAIN && errno != EINTR);
}

static void shut_conn_down(struct conns *t, struct conn *c)
{
	if (c->closed)
		return;
	shutdown(c->fd, SHUT_RDWR);
	c->closed = true;
	t->closing++;
	t->burden[c->client] -= cost_weight[c->cost];
	c->cost = COST_NONE;
}

/* Returns true if a leaves before b: refused bodies first, then the worst of the client with the highest burden. */
static bool leaves_before(const struct conns *t, const struct conn *a, const struct conn *b)
{
	if ((a->cost == COST_REFUSED) != (b->cost == COST_REFUSED))
		return a->cost == COST_REFUSED;
	if (t->burden[a->client] != t->burden[b->client])
		return t->burden[a->client] > t->burden[b->client];
	return a->cost != b->cost ? a->cost > b->cost : a->rate < b->rate;
}

/* Closes connections until the reserved places are free, or all that remain are of use. */
static void make_room(struct conns *t)
{
	while (t->count - t->closing > t->keep) {
		struct conn *c, *worst = NULL;

		for (c = t->oldest; c; c = c->next)
			if (c->cost && !c->closed && (!worst || leaves_before(t, c, worst)))
				worst = c;
		if (!worst)
			return;
		shut_conn_down(t, worst);
	}
}

static void set_conn_cost(struct conns *t, struct conn *c, enum conn_cost cost)
{
	t->burden[c->client] += cost_weight[cost] - cost_weight[c->cost];
	c->cost = cost;
}

static bool is_unfinished(const struct conn *c)
{
	return c->phase != CONN_IDLE && c->phase != CONN_BUSY;
}

/* Counts the connection for its client, or (by -1) no longer. */
static void count_conn(struct conns *t, const struct conn *c, int by)
{
	t->unfinished[c->client] += is_unfinished(c) ? (unsigned)by : 0;
}

static unsigned find_client(const struct conns *t, uint64_t client)
{
	return (unsigned)((client ^ t->seed) * UINT64_C(0x9e3779b97f4a7c15) >> 32) % CONNS_CLIENTS;
}

struct conn *conns_add(struct conns *t, int fd, uint64_t client)
{
	struct conn *c = mem_zalloc(sizeof(*c));

	c->fd = fd;
	c->rate = -1;
	pthread_mutex_lock(&t->lock);
	c->client = find_client(t, client);
	count_conn(t, c, 1);
	append_conn(t, c);
	t->count++;
	make_room(t);
	c->reserved = t->count - t->closing > t->keep;
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
	t->closing -= c->closed;
	count_conn(t, c, -1);
	set_conn_cost(t, c, COST_NONE);
	pthread_mutex_unlock(&t->lock);
	free(c);
}

void conns_client(struct conns *t, struct conn *c, uint64_t client)
{
	if (!c)
		return;
	pthread_mutex_lock(&t->lock);
	set_conn_cost(t, c, COST_NONE);
	count_conn(t, c, -1);
	c->client = find_client(t, client);
	count_conn(t, c, 1);
	pthread_mutex_unlock(&t->lock);
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
		count_conn(t, c, -1);
		c->phase = phase;
		count_conn(t, c, 1);
		c->body_bytes = 0;
		c->taken_at_s = c->moved_at_s = 0;
		c->rate = -1;
		c->late = false;
		set_conn_cost(t, c, COST_NONE);
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

/* The reply bytes that the client has acknowledged, and whether more wait for it. A connection with nothing in its send
 * queue is not stuck: the server has still to answer, or an event stream is idle. */
static bool read_reply_progress(const struct conn *c, uint64_t *ret_acked)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);
	int waiting = 0;

	memset(&info, 0, sizeof(info));
	if (ioctl(c->fd, SIOCOUTQ, &waiting) || getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return false;
	*ret_acked = info.tcpi_bytes_acked;
	return waiting > 0;
}

/* Returns true if the client reads its reply slower than the minimum rate, or not at all. */
static bool is_reply_stuck(struct conn *c, double now)
{
	uint64_t before = c->taken;
	double since = c->taken_at_s;
	bool waiting;

	if (since > 0 && now - since < CONNS_REPLY_WINDOW_S)
		return false;
	waiting = read_reply_progress(c, &c->taken);
	c->taken_at_s = now;
	return since > 0 && waiting && (double)(c->taken - before) < CONNS_REPLY_BYTES_PER_S * (now - since);
}

/* Returns true if the client sent bytes that the server has not read yet: on a busy machine the delay may be the
 * server's. */
static bool has_unread_bytes(const struct conn *c, double age_s)
{
	int n = 0;

	return age_s < CONNS_UNREAD_S && !ioctl(c->fd, SIOCINQ, &n) && n > 0;
}

/* Returns true if unfinished requests of one client hold an eighth of the places. */
static bool is_client_crowding(const struct conns *t, const struct conn *c)
{
	return t->unfinished[c->client] > t->keep / 8;
}

/* Returns true if a request of c may take the place of another connection. */
static bool may_displace(const struct conns *t, const struct conn *c, const struct conn *other)
{
	if (other == c || other->closed || other->phase == CONN_BUSY ||
	    clock_mono_s() - other->since_s < CONNS_READING_S)
		return false;
	if (other->phase == CONN_BODY)
		return t->unfinished[other->client] > t->unfinished[c->client];
	return other->phase != CONN_IDLE || !is_client_crowding(t, c);
}

/* The connection whose place a request takes: a refused body, else one of the client with the most unfinished
 * requests. */
static struct conn *find_displaced(const struct conns *t, const struct conn *c)
{
	struct conn *other, *found = NULL;

	for (other = t->oldest; other; other = other->next) {
		bool refused = other->phase == CONN_REFUSED;

		if (!may_displace(t, c, other) || (found && found->phase == CONN_REFUSED) ||
		    (found && !refused && t->unfinished[other->client] <= t->unfinished[found->client]))
			continue;
		if (!has_unread_bytes(other, 0))
			found = other;
	}
	return found;
}

bool conns_claim(struct conns *t, struct conn *c)
{
	struct conn *other = c;

	if (!c)
		return true;
	pthread_mutex_lock(&t->lock);
	if (c->reserved)
		make_room(t);
	while (c->reserved && t->count - t->closing > t->keep && (other = find_displaced(t, c)))
		shut_conn_down(t, other);
	c->reserved = c->reserved && !other;
	pthread_mutex_unlock(&t->lock);
	return !c->reserved;
}

/* Measures how fast the client sends its body or reads its reply. */
static void measure_rate(struct conn *c, double now, double age_s)
{
	uint64_t acked = 0;
	double moved = c->body_bytes;
	bool owes = false;

	if (c->moved_at_s > 0 && now - c->moved_at_s < CONNS_RATE_WINDOW_S)
		return;
	if (c->phase == CONN_BODY) {
		owes = !has_unread_bytes(c, age_s);
	} else {
		owes = read_reply_progress(c, &acked);
		moved = (double)acked;
	}
	if (c->moved_at_s > 0)
		c->rate = owes ? (moved - c->moved) / (now - c->moved_at_s) : INFINITY;
	c->moved = moved;
	c->moved_at_s = now;
}

static enum conn_cost judge_conn_cost(const struct conns *t, struct conn *c, double now, double age_s)
{
	if (c->phase == CONN_BODY || c->phase == CONN_BUSY) {
		measure_rate(c, now, age_s);
		return c->rate >= 0 && c->rate < CONNS_SLOW_BYTES_PER_S ? COST_SLOW : COST_NONE;
	}
	if ((age_s < CONNS_PATIENCE_S && !is_client_crowding(t, c)) || has_unread_bytes(c, age_s))
		return COST_NONE;
	if (c->phase == CONN_IDLE)
		return t->crowded ? COST_NONE : COST_IDLE;
	return c->phase == CONN_REFUSED ? COST_REFUSED : COST_SLOW;
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
	case CONN_REFUSED:
		c->late = (age_s > CONNS_REFUSED_S && !has_unread_bytes(c, age_s)) || has_client_left(c);
		break;
	case CONN_BUSY:
		return age_s > CONNS_REPLY_WINDOW_S && is_reply_stuck(c, now);
	}
	return before && c->late;
}

void conns_tick(struct conns *t)
{
	double now = clock_mono_s();
	size_t unfinished = 0;
	struct conn *c;

	pthread_mutex_lock(&t->lock);
	for (c = t->oldest; c; c = c->next) {
		double age = now - c->since_s;

		if (c->closed)
			continue;
		unfinished += is_unfinished(c);
		set_conn_cost(t, c, judge_conn_cost(t, c, now, age));
		if (is_conn_late(c, now, age))
			shut_conn_down(t, c);
	}
	t->crowded = unfinished > t->keep / 4;
	make_room(t);
	pthread_mutex_unlock(&t->lock);
}

void conns_shutdown(struct conns *t, bool busy_too)
{
	struct conn *c;

	pthread_mutex_lock(&t->lock);
	for (c = t->oldest; c; c = c->next)
		if (busy_too || c->phase < CONN_BODY)
			shut_conn_down(t, c);
	pthread_mutex_unlock(&t->lock);
}
