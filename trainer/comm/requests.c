/* SPDX-License-Identifier: Apache-2.0 */
/* requests.c: the list of messages in progress, and waits for them: polls for a while, then sleeps until the link has
 * an event. */
#include "trainer/comm/hier_base.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "tracker/base/clock.h"
#include "tracker/mem/mem.h"

#define SPINS 200
#define NAP_S 0.05
#define NAP_MOST_S 1.0 /* a longer nap counts as this: after ctrl-Z and fg the other ranks were not late */
#define REST_LEAST_S 0.0002
#define REST_MOST_S 0.003	       /* the buffers of a fast link may be full after that */
#define LONG_BYTES ((size_t)512 << 10) /* messages of at least that many bytes measure the rate */
#define RATE_KEPT 0.8		       /* weight of the old rate when the new one is lower: a peer was late then */

struct message {
	struct link_transfer transfer;
	size_t due;
};

void requests_take_memory(struct requests *m, int room)
{
	m->list = mem_array((size_t)room, sizeof(*m->list));
	m->room = room;
}

int requests_begin(struct requests *m, const struct message_opts *o, struct err *err)
{
	struct message *w = &m->list[m->n];

	if (!o->bytes)
		return 0;
	assert(m->n < m->room);
	if (!m->n)
		m->pace.began_s = clock_mono_s(), m->pace.requested = 0;
	m->pace.requested += o->sends ? 0 : o->bytes;
	*w = (struct message){ { .peer = o->peer, .sends = o->sends, .data = o->data, .bytes = o->bytes }, o->due };
	m->n++;
	m->sent += o->sends ? (int64_t)o->bytes : 0;
	return m->link->module->start(m->link, &w->transfer, err);
}

/* Removes finished messages from the list. *ret_peer: the peer of a message that is due, or -1. */
static int poll_messages(struct requests *m, size_t due, int *ret_peer, struct err *err)
{
	*ret_peer = -1;
	m->link->module->progress(m->link);
	for (int i = 0; i < m->n;) {
		struct message *w = &m->list[i];
		const int rc = m->link->module->poll(m->link, &w->transfer, err);

		if (rc == ERR_PEER)
			return err_set(err, ERR_PEER, "the connection to rank %d broke (%s)",
				       m->number[w->transfer.peer], m->what);
		if (rc < 0)
			return rc;
		if (rc == 1) {
			*w = m->list[--m->n];
			continue;
		}
		if (w->due <= due)
			*ret_peer = w->transfer.peer;
		i++;
	}
	return 0;
}

/* Measures the receive rate when no message is in progress. */
static void update_rate(struct requests_pace *p)
{
	const double rate = (double)p->requested / (clock_mono_s() - p->began_s + 1e-9);

	if (p->requested >= LONG_BYTES)
		p->rate = rate > p->rate ? rate : RATE_KEPT * p->rate + (1 - RATE_KEPT) * rate;
	p->requested = 0;
}

/* Estimates the seconds until everything due by then has arrived, from the rate of former messages and the start of the
 * first one. */
static double expected_wait_s(const struct requests *m, size_t due)
{
	size_t later = 0;

	for (int i = 0; i < m->n; i++)
		if (m->list[i].due > due && !m->list[i].transfer.sends)
			later += m->list[i].transfer.bytes;
	return m->pace.began_s + (double)(m->pace.requested - later) / m->pace.rate - clock_mono_s();
}

static void sleep_seconds(double seconds)
{
	nanosleep(&(struct timespec){ .tv_nsec = (long)(seconds * 1e9) }, NULL);
}

static bool may_sleep(const struct requests *m)
{
	return m->sleeps_while_waiting && m->link->module->arrives_alone;
}

/* Returns how long to sleep: half of the expected wait, so that the arrival is not missed; 0: too short to sleep. */
static double sleep_s_before_poll(const struct requests *m, size_t due)
{
	const double s = may_sleep(m) && m->pace.rate > 0 ? expected_wait_s(m, due) / 2 : 0;

	return s < REST_LEAST_S ? 0 : s < REST_MOST_S ? s : REST_MOST_S;
}

/* Sleeps until the link has an event. While long messages arrive in pieces, sleeps until there are a few more
 * pieces. */
static void wait_for_link(const struct requests *m)
{
	m->link->module->wait(m->link, NAP_S);
	if (may_sleep(m) && m->pace.requested >= LONG_BYTES)
		sleep_seconds(REST_LEAST_S);
}

/* Sleeps for that long, or (0 s) until the link has an event. Adds the time to *waited_s and fails after the
 * timeout. */
static int wait_for_peer(struct requests *m, int peer, double seconds, double *waited_s, struct err *err)
{
	double nap_s;
	int rc = shm_check(m->local, err);

	if (!rc && m->timeout_s > 0 && *waited_s > m->timeout_s)
		rc = err_set(err, ERR_PEER, "rank %d did not arrive at %s within %.0f s", m->number[peer], m->what,
			     m->timeout_s);
	if (rc)
		return rc;
	nap_s = clock_mono_s();
	if (seconds > 0)
		sleep_seconds(seconds);
	else
		wait_for_link(m);
	nap_s = clock_mono_s() - nap_s;
	*waited_s += nap_s < NAP_MOST_S ? nap_s : NAP_MOST_S;
	return 0;
}

int requests_await(struct requests *m, size_t due, struct err *err)
{
	double waited_s = 0;

	for (int spins = 0;; spins++) {
		int peer, rc = poll_messages(m, due, &peer, err);
		double seconds;

		if (!rc && !m->n)
			update_rate(&m->pace);
		if (rc || peer < 0)
			return rc;
		seconds = sleep_s_before_poll(m, due);
		if (seconds > 0 || spins >= SPINS)
			rc = wait_for_peer(m, peer, seconds, &waited_s, err);
		if (seconds > 0)
			spins = 0;
		if (rc)
			return rc;
	}
}

int requests_await_all(struct requests *m, struct err *err)
{
	return requests_await(m, SIZE_MAX, err);
}

void requests_drop(struct requests *m)
{
	m->n = 0;
}

void requests_free(struct requests *m)
{
	free(m->list);
}
