/* messages.c: the list of what is under way, and waits for it: a while awake, then asleep until the link stirs. */
#include "trainer/comm/messages.h"

#include <assert.h>
#include <stdlib.h>

#include "tracker/base/clock.h"
#include "trainer/comm/shm.h"

#define SPINS 200
#define NAP_S 0.05
#define NAP_MOST_S 1.0 /* what a nap may count for: after ctrl-Z and fg the others have not been late */

struct message {
	struct link_transfer transfer;
	size_t due;
};

int messages_take_memory(struct messages *m, int room, struct err *err)
{
	m->list = calloc((size_t)room, sizeof(*m->list));
	m->room = room;
	return m->list ? 0 : err_set(err, ERR_NOMEM, "out of memory: %d messages", room);
}

int messages_begin(struct messages *m, const struct message_opts *o, struct err *err)
{
	struct message *w = &m->list[m->n];

	if (!o->bytes)
		return 0;
	assert(m->n < m->room);
	*w = (struct message){ { .peer = o->peer, .sends = o->sends, .data = o->data, .bytes = o->bytes }, o->due };
	m->n++;
	m->sent += o->sends ? (int64_t)o->bytes : 0;
	return m->link->module->start(m->link, &w->transfer, err);
}

/* Takes what is done out of the list. *ret_peer: one of those that are waited for, or -1. */
static int sweep(struct messages *m, size_t due, int *ret_peer, struct err *err)
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

/* Sleeps until the link stirs; adds to *waited_s. */
static int nap(struct messages *m, int peer, double *waited_s, struct err *err)
{
	double nap_s;
	int rc = shm_check(m->local, err);

	if (!rc && m->timeout_s > 0 && *waited_s > m->timeout_s)
		rc = err_set(err, ERR_PEER, "rank %d did not come to %s within %.0f s", m->number[peer], m->what,
			     m->timeout_s);
	if (rc)
		return rc;
	nap_s = clock_mono_s();
	m->link->module->wait(m->link, NAP_S);
	nap_s = clock_mono_s() - nap_s;
	*waited_s += nap_s < NAP_MOST_S ? nap_s : NAP_MOST_S;
	return 0;
}

int messages_await(struct messages *m, size_t due, struct err *err)
{
	double waited_s = 0;

	for (int spins = 0;; spins++) {
		int peer, rc = sweep(m, due, &peer, err);

		if (rc || peer < 0)
			return rc;
		if (spins >= SPINS)
			rc = nap(m, peer, &waited_s, err);
		if (rc)
			return rc;
	}
}

int messages_await_all(struct messages *m, struct err *err)
{
	return messages_await(m, SIZE_MAX, err);
}

void messages_drop(struct messages *m)
{
	m->n = 0;
}

void messages_free(struct messages *m)
{
	free(m->list);
}
