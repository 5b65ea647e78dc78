/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous.c: rank 0 listens, receives a hello from every other rank, then answers all of them. The socket shows a
 * rank that ends while it waits. A rank that cannot take part connects to report it. */
#include "trainer/comm/rendezvous.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tracker/base/clock.h"

#define MAGIC 0x64707432u
#define RETRY_S 0.01
#define HELLO_WAIT_S 5 /* a rank sends its hello as soon as it connects */
#define LINGER_S 3.0   /* ranks that connect this much later still receive the reason of the failure */
#define NOTICE_S 5.0   /* rank 0 names the ranks it waits for after this time */
#define ABSENT (-1)
#define NOTIFIED (-2)

struct rendezvous_hello {
	uint32_t magic;
	int32_t rank, world;
	int32_t failed; /* it only reports that it cannot take part */
};

struct rendezvous_host {
	const struct rendezvous_opts *o;
	int listener;
	int *peer;	     /* by rank; or ABSENT, NOTIFIED */
	struct pollfd *poll; /* the listener, then the peers */
	double until_s;
};

static socklen_t job_socket_address(const char *job, struct sockaddr_un *ret)
{
	size_t n;

	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = (size_t)snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1, "dptrain-%s", job);
	n = n < sizeof(ret->sun_path) - 1 ? n : sizeof(ret->sun_path) - 2;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

/* Any user can use the name of an abstract socket: only processes of the same user belong to the job. */
static bool is_peer_own_user(int fd)
{
	struct ucred c;
	socklen_t n = sizeof(c);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) && c.uid == geteuid();
}

/* ---- the answer: an error, or descriptors ---- */

union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(RENDEZVOUS_FDS_MAX * sizeof(int))];
};

static void send_answer(int to, const struct err *e, const int *fd, int n)
{
	union control c = { .bytes = { 0 } };
	struct iovec v = { (void *)(uintptr_t)e, sizeof(*e) };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };

	if (!e->code) {
		m.msg_control = &c;
		m.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
		c.head = (struct cmsghdr){ CMSG_LEN((size_t)n * sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
		memcpy(CMSG_DATA(&c.head), fd, (size_t)n * sizeof(int));
	}
	sendmsg(to, &m, MSG_NOSIGNAL);
}

static int receive_answer(int from, int first, int *fd, int n, struct err *err)
{
	union control c;
	struct err e;
	struct iovec v = { &e, sizeof(e) };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c) };
	ssize_t got = recvmsg(from, &m, MSG_CMSG_CLOEXEC);

	if (got != (ssize_t)sizeof(e))
		return err_set(err, ERR_PEER, "rank %d ended while the ranks were starting", first);
	if (e.code)
		return err_set(err, e.code, "%.*s", (int)sizeof(e.text) - 1, e.text);
	if (m.msg_flags & MSG_CTRUNC || m.msg_controllen < CMSG_SPACE((size_t)n * sizeof(int)))
		return err_set(err, ERR_IO, "cannot receive rank %d's shared memory: too many open files", first);
	memcpy(fd, CMSG_DATA(&c.head), (size_t)n * sizeof(int));
	return 0;
}

/* ---- rank 0 ---- */

static int listen_for_ranks(struct rendezvous_host *h, struct err *err)
{
	struct sockaddr_un a;
	socklen_t n = job_socket_address(h->o->job, &a);

	h->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (h->listener < 0)
		return err_set_errno(err, errno, "cannot create a socket for the other ranks");
	if (!bind(h->listener, (const struct sockaddr *)&a, n) && !listen(h->listener, h->o->world))
		return 0;
	if (errno == EADDRINUSE)
		return err_set(err, ERR_EXISTS, "two processes claim rank %d of the job", h->o->first);
	return err_set_errno(err, errno, "cannot wait for the other ranks");
}

/* Accepts a connection. A process without a valid hello does not belong to the job. */
static int accept_rank(struct rendezvous_host *h, struct err *err)
{
	const struct timeval limit = { .tv_sec = HELLO_WAIT_S };
	struct rendezvous_hello hello;
	int fd = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? err_set_errno(err, errno, "cannot accept the other ranks")
							  : 0;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (!is_peer_own_user(fd) || recv(fd, &hello, sizeof(hello), 0) != (ssize_t)sizeof(hello) ||
	    hello.magic != MAGIC || hello.world != h->o->world || hello.rank < 0 || hello.rank >= h->o->world) {
		close(fd);
		return 0;
	}
	if (hello.rank == 0 || h->peer[hello.rank] >= 0) {
		err_set(err, ERR_EXISTS, "two processes claim rank %d of the job", h->o->first + hello.rank);
		send_answer(fd, err, NULL, 0);
		close(fd);
		return err->code;
	}
	h->peer[hello.rank] = fd;
	if (!hello.failed)
		return 0;
	return err_set(err, ERR_PEER, "rank %d could not start; its own message has the reason",
		       h->o->first + hello.rank);
}

static int first_missing_rank(const struct rendezvous_host *h)
{
	int r = 1;

	while (r < h->o->world && h->peer[r] >= 0)
		r++;
	return r;
}

static int report_absent(const struct rendezvous_opts *o, int rank, struct err *err)
{
	if (!o->origin)
		return err_set(err, ERR_PEER, "rank %d did not start within %.0f s", rank, o->wait_s);
	return err_set(err, ERR_PEER, "rank %d did not start within %.0f s, but %s: start it, or unset these variables",
		       rank, o->wait_s, o->origin);
}

/* Waits until all ranks are connected. */
static int gather_ranks(struct rendezvous_host *h, struct err *err)
{
	double notice_s = clock_mono_s() + NOTICE_S;
	int rc = 0;

	while (!rc && first_missing_rank(h) < h->o->world) {
		double left_s = h->until_s - clock_mono_s();

		if (left_s <= 0)
			return report_absent(h->o, h->o->first + first_missing_rank(h), err);
		if (h->o->waits && clock_mono_s() > notice_s) {
			h->o->waits(h->o->origin);
			notice_s = INFINITY;
		}
		left_s = fmin(left_s, NOTICE_S);
		h->poll[0] = (struct pollfd){ .fd = h->listener, .events = POLLIN };
		for (int r = 1; r < h->o->world; r++)
			h->poll[r] = (struct pollfd){ .fd = h->peer[r], .events = POLLIN };
		if (poll(h->poll, (nfds_t)h->o->world, (int)(left_s * 1000) + 1) < 0)
			continue;
		for (int r = 1; !rc && r < h->o->world; r++)
			if (h->poll[r].revents) /* a rank sends nothing after its hello: the connection ended */
				rc = err_set(err, ERR_PEER, "rank %d ended while the ranks were starting",
					     h->o->first + r);
		if (!rc && h->poll[0].revents)
			rc = accept_rank(h, err);
	}
	return rc;
}

/* Sends the reason of the failure to all connected ranks, and for a while to those that still connect. */
static void refuse_ranks(struct rendezvous_host *h, const struct err *why)
{
	double until_s = clock_mono_s() + LINGER_S;
	struct err known = ERR_INIT; /* they receive `why` */

	for (;;) {
		struct pollfd p = { .fd = h->listener, .events = POLLIN };
		double left_s = until_s - clock_mono_s();
		int missing = 0;

		for (int r = 1; r < h->o->world; r++) {
			if (h->peer[r] >= 0) {
				send_answer(h->peer[r], why, NULL, 0);
				close(h->peer[r]);
				h->peer[r] = NOTIFIED;
			}
			missing += h->peer[r] == ABSENT;
		}
		if (!missing || left_s <= 0)
			return;
		if (poll(&p, 1, (int)(left_s * 1000) + 1) > 0)
			accept_rank(h, &known);
	}
}

/* Rank 0: gathers the ranks, then sends all of them the descriptors or the error. */
static int run_rendezvous_host(const struct rendezvous_opts *o, const struct err *failure, const int *fd, int n,
			       struct err *err)
{
	struct rendezvous_host h = { .o = o, .listener = -1, .until_s = clock_mono_s() + o->wait_s };
	struct err outcome = ERR_INIT;
	int rc;

	h.peer = malloc((size_t)o->world * sizeof(*h.peer));
	h.poll = calloc((size_t)o->world, sizeof(*h.poll));
	for (int r = 0; h.peer && r < o->world; r++)
		h.peer[r] = ABSENT;
	rc = h.peer && h.poll ? listen_for_ranks(&h, &outcome) : err_nomem(&outcome, "start of the ranks");
	if (failure && failure->code)
		outcome = *failure;
	else if (!rc)
		gather_ranks(&h, &outcome);
	if (outcome.code && !rc) /* the socket exists */
		refuse_ranks(&h, &outcome);
	for (int r = 1; h.peer && r < o->world; r++)
		if (h.peer[r] >= 0) {
			send_answer(h.peer[r], &outcome, fd, n);
			close(h.peer[r]);
		}
	if (h.listener >= 0)
		close(h.listener);
	free(h.peer);
	free(h.poll);
	return outcome.code ? err_set(err, outcome.code, "%s", outcome.text) : 0;
}

/* ---- the others ---- */

/* *ret: a connection to rank 0, which may start later than this rank. */
static int connect_to_first_rank(const struct rendezvous_opts *o, bool failed, int *ret, struct err *err)
{
	const struct rendezvous_hello hello = { MAGIC, o->rank, o->world, failed };
	double until_s = clock_mono_s() + o->wait_s;
	struct sockaddr_un a;
	socklen_t n = job_socket_address(o->job, &a);

	while (clock_mono_s() < until_s) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

		if (fd < 0)
			return err_set_errno(err, errno, "cannot create a socket to find rank %d", o->first);
		if (!connect(fd, (const struct sockaddr *)&a, n) && is_peer_own_user(fd) &&
		    send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) == (ssize_t)sizeof(hello)) {
			*ret = fd;
			return 0;
		}
		close(fd);
		clock_sleep_s(RETRY_S);
	}
	return report_absent(o, o->first, err);
}

static int join_rendezvous(const struct rendezvous_opts *o, const struct err *failure, int *fd, int n, struct err *err)
{
	bool failed = failure && failure->code;
	int host = -1, rc = connect_to_first_rank(o, failed, &host, err);

	if (rc)
		return rc;
	rc = failed ? err_set(err, failure->code, "%s", failure->text) : receive_answer(host, o->first, fd, n, err);
	close(host);
	return rc;
}

int rendezvous(const struct rendezvous_opts *o, const struct err *failure, int *fd, int n, struct err *err)
{
	return o->rank == 0 ? run_rendezvous_host(o, failure, fd, n, err) : join_rendezvous(o, failure, fd, n, err);
}
