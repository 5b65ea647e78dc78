/* SPDX-License-Identifier: Apache-2.0 */
/* node_group.c: connects the launchers (bootstrap.h), then exchanges messages of one size on the connections. */
#include "trainer/launch/node_group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/mem/mem.h"
#include "trainer/comm/bootstrap.h"

#define ALIVE_S 1.0
#define SILENT_S 3.0
/* a longer time between two checks counts as this: a whole job that was stopped is no failure */
#define CHECK_MOST_S 1.0
#define SAY_S 2.0
#define PART_S 2.0

struct launcher_peer {
	bool lost, warned;
	bool gone; /* dropped: its ranks are not counted */
	double silent_s;
	size_t have; /* bytes of word received */
	struct node_group_word word;
	char address[TCP_NAME_BYTES];
	int nproc;
};

/* Messages are copied from memory as they are; raise BOOTSTRAP_VERSION when a struct changes. */
_Static_assert(sizeof(struct node_group_word) == 6 * sizeof(int32_t) + JOB_RESULT_REASON_BYTES, "a word has no gaps");

struct node_announcement { /* announced by each launcher at the start */
	int32_t nproc, ranks_port;
};

struct node_group {
	struct bootstrap *x;
	struct node_group_opts o;
	char host[256], key[BOOTSTRAP_KEY_BYTES];
	int ranks_listener, ranks_port;
	struct launcher_peer *peer; /* by node */
	double said_s, checked_s;
};

/* Sends this machine's number of ranks and receives those of all machines, and node 0's port for the ranks. */
static int exchange_rank_counts(struct node_group *n, struct err *err)
{
	struct node_announcement own = { .nproc = n->o.nproc, .ranks_port = n->ranks_port };
	int rc = bootstrap_round(n->x, &own, sizeof(own), NULL, err);

	for (int i = 0; !rc && i < n->o.count; i++) {
		struct node_announcement r = { 0 };
		size_t bytes;
		const void *said = bootstrap_said(n->x, i, &bytes);

		if (bytes == sizeof(r))
			memcpy(&r, said, sizeof(r));
		n->peer[i].lost = bytes == 0;
		if (n->peer[i].lost)
			r = (struct node_announcement){ .nproc = n->peer[0].nproc };
		if (r.nproc < 1)
			return err_set(err, ERR_PEER, "node %d did not send its number of ranks", i);
		n->peer[i].nproc = r.nproc;
		if (i == 0)
			n->ranks_port = r.ranks_port;
		if (bootstrap_fd(n->x, i) >= 0)
			tcp_peer_name(bootstrap_fd(n->x, i), n->peer[i].address);
	}
	return rc;
}

/* Listens if this machine is node 0: by --node-rank, or, when nodes number themselves, because the address is its own
 * and the port is free. */
static int find_listener(const struct node_group_opts *o, int *ret_fd, struct err *err)
{
	int rc;

	*ret_fd = -1;
	if (o->self > 0)
		return 0;
	rc = tcp_listen(o->host, o->port, ret_fd, err);
	if (rc == ERR_NOENT && o->self == 0)
		return err_set(err, ERR_USAGE, "%.200s is not an address of this machine, which is node 0: give all "
			       "nodes an address of node 0", o->host);
	if (o->self < 0 && (rc == ERR_NOENT || rc == ERR_EXISTS)) {
		*err = (struct err)ERR_INIT;
		return 0;
	}
	return rc;
}

int node_group_open(struct node_group **ret, const struct node_group_opts *o, struct err *err)
{
	struct node_group *n = mem_zalloc(sizeof(*n));
	struct bootstrap_opts e = { .what = "node", .count = o->count, .least = o->least, .wait_s = o->wait_s,
				    .port = o->port };
	int rc;

	*n = (struct node_group){ .o = *o, .ranks_listener = -1 };
	snprintf(n->host, sizeof(n->host), "%s", o->host);
	snprintf(n->key, sizeof(n->key), "%s", o->key);
	n->o.host = e.host = n->host;
	n->o.key = e.key = n->key;
	n->peer = mem_array((size_t)o->count, sizeof(*n->peer));
	rc = find_listener(o, &e.listener, err);
	e.self = e.listener >= 0 ? 0 : o->self;
	if (!rc && e.listener >= 0) {
		rc = tcp_listen(o->host, 0, &n->ranks_listener, err);
		n->ranks_port = tcp_port(n->ranks_listener);
	}
	if (!rc)
		rc = bootstrap_open(&n->x, &e, err);
	if (e.listener >= 0)
		close(e.listener);
	if (!rc)
		rc = exchange_rank_counts(n, err);
	if (rc) {
		node_group_close(n);
		return rc;
	}
	n->checked_s = clock_mono_s();
	*ret = n;
	return 0;
}

/* Unread bytes at close would reset the connection and lose the last message: reads until the others have closed. */
static void drain_connections(struct node_group *n)
{
	double until_s = clock_mono_s() + PART_S;
	char rest[4096];

	for (int i = 0; i < n->o.count; i++)
		if (bootstrap_fd(n->x, i) >= 0)
			shutdown(bootstrap_fd(n->x, i), SHUT_WR);
	for (int i = 0; i < n->o.count; i++) {
		struct pollfd p = { .fd = bootstrap_fd(n->x, i), .events = POLLIN };
		double left_s = until_s - clock_mono_s();

		while (p.fd >= 0 && left_s > 0 && poll(&p, 1, (int)(left_s * 1000)) > 0 &&
		       recv(p.fd, rest, sizeof(rest), 0) > 0)
			left_s = until_s - clock_mono_s();
	}
}

void node_group_close(struct node_group *n)
{
	if (!n)
		return;
	if (n->x)
		drain_connections(n);
	if (n->ranks_listener >= 0)
		close(n->ranks_listener);
	bootstrap_close(n->x);
	free(n->peer);
	free(n);
}

int node_group_self(const struct node_group *n)
{
	return bootstrap_self(n->x);
}

int node_group_count(const struct node_group *n)
{
	return n->o.count;
}

static int ranks_before(const struct node_group *n, int node)
{
	int sum = 0;

	for (int i = 0; i < node; i++)
		sum += n->peer[i].gone ? 0 : n->peer[i].nproc;
	return sum;
}

int node_group_left(const struct node_group *n)
{
	int left = 0;

	for (int i = 0; i < n->o.count; i++)
		left += !n->peer[i].lost;
	return left;
}

void node_group_lose(struct node_group *n, int node)
{
	if (node >= 0 && node < n->o.count)
		n->peer[node].lost = true;
}

bool node_group_lost(const struct node_group *n, int node)
{
	return n->peer[node].lost;
}

void node_group_shrink(struct node_group *n)
{
	for (int i = 0; i < n->o.count; i++)
		n->peer[i].gone = n->peer[i].lost;
}

int node_group_world(const struct node_group *n)
{
	return ranks_before(n, n->o.count);
}

int node_group_first(const struct node_group *n)
{
	return ranks_before(n, node_group_self(n));
}

const char *node_group_key(const struct node_group *n)
{
	return n->key;
}

const char *node_group_host(const struct node_group *n)
{
	return n->host;
}

int node_group_ranks_port(const struct node_group *n)
{
	return n->ranks_port;
}

int node_group_ranks_listener(const struct node_group *n)
{
	return n->ranks_listener;
}

/* ---- while the job runs ---- */

static void send_to_node(struct node_group *n, int node, const struct node_group_word *w)
{
	struct err ignored;
	int fd = bootstrap_fd(n->x, node);

	if (fd >= 0 && !n->peer[node].lost)
		tcp_send(fd, w, sizeof(*w), clock_mono_s() + SAY_S, &ignored);
}

void node_group_say(struct node_group *n, const struct node_group_word *w)
{
	struct node_group_word own = *w;

	own.node = node_group_self(n);
	for (int i = 0; i < n->o.count; i++)
		send_to_node(n, i, &own);
}

static void mark_node_lost(struct node_group *n, int i, const char *how, struct node_group_word *ret)
{
	struct launcher_peer *p = &n->peer[i];

	p->lost = true;
	*ret = (struct node_group_word){ .kind = NODE_GROUP_LOST, .node = i };
	ret->verdict = (struct job_result){ .code = 1, .culprit = -1, .blame = JOB_RESULT_OWN };
	snprintf(ret->verdict.reason, sizeof(ret->verdict.reason), "node %d (%s) is lost: %s", i, p->address, how);
}

/* Node 0 forwards a message of one node to the others. */
static void forward_message(struct node_group *n, const struct node_group_word *w)
{
	if (node_group_self(n) != 0 || w->kind == NODE_GROUP_ALIVE || w->kind == NODE_GROUP_ENDED)
		return;
	for (int i = 1; i < n->o.count; i++)
		if (i != w->node)
			send_to_node(n, i, w);
}

/* Reads a message of launcher i. Returns true if *ret has a complete message or the loss of that machine. */
static bool read_peer_message(struct node_group *n, int i, struct node_group_word *ret)
{
	struct launcher_peer *p = &n->peer[i];
	const size_t before = p->have;
	const int rc = tcp_recv_part(bootstrap_fd(n->x, i), &p->word, sizeof(p->word), &p->have);

	if (rc < 0) {
		mark_node_lost(n, i, "its launcher ended", ret);
		return true;
	}
	if (p->have > before) {
		p->silent_s = 0;
		p->warned = false;
	}
	if (!rc)
		return false;
	p->have = 0;
	p->word.verdict.reason[sizeof(p->word.verdict.reason) - 1] = '\0';
	if (node_group_self(n) == 0)
		p->word.node = i;
	forward_message(n, &p->word);
	*ret = p->word;
	return true;
}

static bool notice_silence(struct node_group *n, int i, double silent_s, struct node_group_word *ret)
{
	struct launcher_peer *p = &n->peer[i];
	char how[64];

	if (p->silent_s > silent_s) {
		snprintf(how, sizeof(how), "no message for %.0f s", silent_s);
		mark_node_lost(n, i, how, ret);
		return true;
	}
	if (p->silent_s < SILENT_S || p->warned)
		return false;
	p->warned = true;
	*ret = (struct node_group_word){ .kind = NODE_GROUP_SILENT, .node = i };
	snprintf(ret->verdict.reason, sizeof(ret->verdict.reason), "node %d (%s) has been silent for %.0f s", i,
		 p->address, SILENT_S);
	return true;
}

bool node_group_hear(struct node_group *n, double silent_s, struct node_group_word *ret)
{
	double now_s = clock_mono_s(), passed_s = now_s - n->checked_s;

	n->checked_s = now_s;
	if (now_s - n->said_s >= ALIVE_S) {
		n->said_s = now_s;
		node_group_say(n, &(struct node_group_word){ .kind = NODE_GROUP_ALIVE });
	}
	for (int i = 0; i < n->o.count; i++)
		if (bootstrap_fd(n->x, i) >= 0 && !n->peer[i].lost)
			n->peer[i].silent_s += passed_s < CHECK_MOST_S ? passed_s : CHECK_MOST_S;
	for (int i = 0; i < n->o.count; i++) {
		if (bootstrap_fd(n->x, i) < 0 || n->peer[i].lost)
			continue;
		while (read_peer_message(n, i, ret))
			if (ret->kind != NODE_GROUP_ALIVE)
				return true;
		if (!n->peer[i].lost && notice_silence(n, i, silent_s, ret))
			return true;
	}
	return false;
}

int node_group_poll(const struct node_group *n, struct pollfd *p)
{
	int used = 0;

	for (int i = 0; i < n->o.count; i++)
		if (bootstrap_fd(n->x, i) >= 0 && !n->peer[i].lost)
			p[used++] = (struct pollfd){ .fd = bootstrap_fd(n->x, i), .events = POLLIN };
	return used;
}
