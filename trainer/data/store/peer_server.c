/* SPDX-License-Identifier: Apache-2.0 */
/* peer_server.c: one thread polls all connections. A request is answered at once: it never waits for the store. */
#include "trainer/data/store/peers.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/crc32c.h"
#include "tracker/mem/mem.h"
#include "trainer/data/store/fetch.h"

#define KEPT_OPEN_S 120.0 /* a connection without a request */
#define REST_MS 100	  /* without a free descriptor */
#define REPLY_BYTES 512
#define SEND_MOST ((size_t)1 << 20) /* per turn, so that a fast client does not delay the others */

struct peer_connection {
	int fd;
	double since; /* the last byte */
	size_t have;  /* bytes of head */
	char head[PEER_SERVER_HEAD_BYTES];
	size_t reply_n, sent; /* bytes of the reply, and of reply and block together that were sent; 0: reading */
	char reply[REPLY_BYTES];
	char *block; /* from the pool, while it is sent */
	size_t block_n;
	bool closes; /* after the reply */
};

struct peer_server {
	struct peers *peers;
	int listener, wake;
	pthread_t thread;
	bool started, rests; /* rests: the next poll leaves the listener out */
	_Atomic bool stop;
	struct peer_connection *connection[PEER_SERVER_CONNECTIONS];
	int n;
	char *block[PEER_SERVER_BLOCKS]; /* free memory of blocks; allocated when needed */
	int n_blocks, n_used;
};

/* ---- connections ---- */

static void give_block_back(struct peer_server *s, struct peer_connection *c)
{
	if (!c->block)
		return;
	s->block[s->n_blocks++] = c->block;
	s->n_used--;
	c->block = NULL;
}

static void drop_connection(struct peer_server *s, int i)
{
	struct peer_connection *c = s->connection[i];

	give_block_back(s, c);
	close(c->fd);
	free(c);
	s->connection[i] = s->connection[--s->n];
}

/* Closes the connection that waits longest for a request. False: all are sending or receiving. */
static bool drop_idle_connection(struct peer_server *s)
{
	int oldest = -1;

	for (int i = 0; i < s->n; i++)
		if (!s->connection[i]->reply_n &&
		    (oldest < 0 || s->connection[i]->since < s->connection[oldest]->since))
			oldest = i;
	if (oldest >= 0)
		drop_connection(s, oldest);
	return oldest >= 0;
}

/* Returns 0, or the errno of accept4. */
static int accept_connection(struct peer_server *s)
{
	const int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct peer_connection *c;

	if (fd < 0)
		return errno;
	if (s->n >= PEER_SERVER_CONNECTIONS && !drop_idle_connection(s)) {
		close(fd);
		return 0;
	}
	c = mem_alloc(sizeof(*c));
	*c = (struct peer_connection){ .fd = fd, .since = clock_mono_s() };
	s->connection[s->n++] = c;
	return 0;
}

/* Accepts a waiting client. If no descriptor is free, closes the connection that has been idle longest. If none is
 * idle, the listener rests: poll would return immediately, again and again. */
static void accept_client(struct peer_server *s)
{
	int rc = accept_connection(s);

	if ((rc == EMFILE || rc == ENFILE) && drop_idle_connection(s))
		rc = accept_connection(s);
	s->rests = rc && rc != EAGAIN;
}

static void find_client_name(const struct peer_connection *c, char *ret, socklen_t n)
{
	struct sockaddr_storage a;
	socklen_t bytes = sizeof(a);

	if (getpeername(c->fd, (struct sockaddr *)&a, &bytes) ||
	    getnameinfo((const struct sockaddr *)&a, bytes, ret, n, NULL, 0, NI_NUMERICHOST))
		snprintf(ret, n, "a client");
}

/* ---- requests ---- */

/* Makes a reply without a block. why: static text, sent as the body; "" for those that are no error. */
static void reply_status(struct peer_server *s, struct peer_connection *c, const char *status, const char *why)
{
	char from[64];

	c->reply_n = (size_t)snprintf(c->reply, sizeof(c->reply),
				      "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n%s\r\n%s%s",
				      status, *why ? strlen(why) + 1 : 0, *why ? "Connection: close\r\n" : "", why,
				      *why ? "\n" : "");
	c->sent = c->block_n = 0;
	c->closes = *why;
	if (!*why)
		return;
	find_client_name(c, from, sizeof(from));
	peers_refused(s->peers, from, why);
}

/* Finds the value of a header in the request; NULL: not there. */
static const char *find_header(const char *head, const char *name)
{
	size_t n = strlen(name);

	for (const char *line = strstr(head, "\r\n"); line; line = strstr(line + 2, "\r\n"))
		if (!strncasecmp(line + 2, name, n) && line[2 + n] == ':')
			return line + 3 + n;
	return NULL;
}

/* Parses a request and its proof. Everything else that it may contain is ignored. */
static bool parse_ask(const char *head, struct peers_ask *ret, char proof[PEERS_PROOF_BYTES])
{
	const char *given = find_header(head, "Authorization");
	char object[10], begin[19], bytes[19]; /* digits alone: numbers of sscanf may have signs */
	int end = 0;

	if (sscanf(head, "GET /block/%64[0-9a-f]?object=%9[0-9]&begin=%18[0-9]&bytes=%18[0-9] HTTP/1.1%n", ret->name,
		   object, begin, bytes, &end) != 4 ||
	    !end || strncmp(head + end, "\r\n", 2) || strlen(ret->name) != 64)
		return false;
	ret->object = (int)strtol(object, NULL, 10);
	ret->begin = strtoull(begin, NULL, 10);
	ret->bytes = strtoull(bytes, NULL, 10);
	if (!given || sscanf(given, " DPTrain %32[0-9a-f] %64[0-9a-f]%n", ret->nonce, proof, &end) != 2)
		return false;
	return strlen(ret->nonce) == PEERS_NONCE_BYTES - 1 && strlen(proof) == PEERS_PROOF_BYTES - 1;
}

static void reply_block(struct peer_server *s, struct peer_connection *c, const struct peers_ask *ask)
{
	uint32_t crc = crc32c(0, c->block, (size_t)ask->bytes);
	char proof[PEERS_PROOF_BYTES];

	peers_prove_block(s->peers, ask, crc, proof);
	c->block_n = (size_t)ask->bytes;
	c->reply_n = (size_t)snprintf(c->reply, sizeof(c->reply),
				      "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
				      "Content-Length: %zu\r\n" PEER_SERVER_BLOCK_HEADER ": %08x %s\r\n\r\n",
				      c->block_n, (unsigned)crc, proof);
	c->sent = 0;
}

/* Answers a complete request. The proof comes first: strangers learn nothing else. */
static void answer_request(struct peer_server *s, struct peer_connection *c)
{
	char proof[PEERS_PROOF_BYTES], want[PEERS_PROOF_BYTES];
	struct peers_ask ask = { .object = 0 };
	int rc;

	if (!parse_ask(c->head, &ask, proof)) {
		reply_status(s, c, "400 Bad Request", "not a request for a block");
		return;
	}
	peers_prove_ask(s->peers, &ask, want);
	if (!peers_proof_equal(proof, want)) {
		reply_status(s, c, "403 Forbidden", "another job key (DPTRAIN_JOB_KEY)");
		return;
	}
	if (!ask.bytes || ask.bytes > FETCH_BLOCK) {
		reply_status(s, c, "404 Not Found", "not a block of this node's set");
		return;
	}
	if (s->n_used == PEER_SERVER_BLOCKS) {
		reply_status(s, c, "503 Service Unavailable", "");
		return;
	}
	c->block = s->n_blocks ? s->block[--s->n_blocks] : mem_alloc(FETCH_BLOCK);
	s->n_used++;
	rc = peers_read(s->peers, &ask, c->block);
	if (rc > 0) {
		reply_block(s, c, &ask);
		return;
	}
	give_block_back(s, c);
	if (rc)
		reply_status(s, c, "404 Not Found", "not a block of this node's set");
	else
		reply_status(s, c, "202 Accepted", "");
}

/* Answers the next request if it is complete. */
static void answer_head(struct peer_server *s, struct peer_connection *c)
{
	char *end = c->have ? memmem(c->head, c->have, "\r\n\r\n", 4) : NULL;

	if (!end && c->have == sizeof(c->head)) {
		reply_status(s, c, "400 Bad Request", "a request that is too long");
	} else if (end) {
		size_t n = (size_t)(end + 4 - c->head);

		end[2] = '\0';
		if (memchr(c->head, '\0', (size_t)(end + 2 - c->head)))
			reply_status(s, c, "400 Bad Request", "not a request for a block");
		else
			answer_request(s, c);
		c->have -= n;
		memmove(c->head, c->head + n, c->have);
	}
}

/* Returns false if the connection ended. */
static bool read_request(struct peer_server *s, struct peer_connection *c)
{
	ssize_t got = recv(c->fd, c->head + c->have, sizeof(c->head) - c->have, 0);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (got <= 0)
		return false;
	if (!c->have) /* not at each byte: a request must be complete in time */
		c->since = clock_mono_s();
	c->have += (size_t)got;
	answer_head(s, c);
	return true;
}

/* Sends more of the reply and the block. Returns false if the connection ended. */
static bool send_reply(struct peer_server *s, struct peer_connection *c)
{
	bool in_head = c->sent < c->reply_n;
	const char *from = in_head ? c->reply + c->sent : c->block + (c->sent - c->reply_n);
	size_t left = in_head ? c->reply_n - c->sent : c->reply_n + c->block_n - c->sent;
	ssize_t put = send(c->fd, from, left < SEND_MOST ? left : SEND_MOST,
			   MSG_NOSIGNAL | (in_head && c->block_n ? MSG_MORE : 0));

	if (put < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (put <= 0)
		return false;
	c->since = clock_mono_s();
	c->sent += (size_t)put;
	if (c->sent < c->reply_n + c->block_n)
		return true;
	give_block_back(s, c);
	c->reply_n = c->block_n = 0;
	if (c->closes) { /* what the client still sends must not reset the connection before it has read the reply */
		shutdown(c->fd, SHUT_WR);
		c->have = 0;
		return true;
	}
	answer_head(s, c); /* a request that followed at once */
	return true;
}

/* Reads and drops what a refused client sends, until it closes. */
static bool drain_connection(struct peer_connection *c)
{
	char rest[4096];
	ssize_t got = recv(c->fd, rest, sizeof(rest), 0);

	return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

/* ---- the thread ---- */

static double allowed_silence(const struct peer_connection *c)
{
	return c->reply_n || c->have || c->closes ? PEER_SERVER_IDLE_S : KEPT_OPEN_S;
}

static bool serve_connection(struct peer_server *s, struct peer_connection *c)
{
	if (c->reply_n)
		return send_reply(s, c);
	return c->closes ? drain_connection(c) : read_request(s, c);
}

/* Polls the wake-up call, the listener and the connections until the server is closed. */
static void *run_peer_server(void *arg)
{
	struct peer_server *s = arg;
	struct pollfd p[PEER_SERVER_CONNECTIONS + 2];

	pthread_setname_np(pthread_self(), "dptrain-peers");
	while (!atomic_load(&s->stop)) {
		int n = s->n;
		double now;

		p[0] = (struct pollfd){ .fd = s->wake, .events = POLLIN };
		p[1] = (struct pollfd){ .fd = s->rests ? -1 : s->listener, .events = POLLIN };
		for (int i = 0; i < n; i++)
			p[2 + i] = (struct pollfd){ .fd = s->connection[i]->fd,
						    .events = s->connection[i]->reply_n ? POLLOUT : POLLIN };
		if (poll(p, (nfds_t)n + 2, s->rests ? REST_MS : 1000) < 0 && errno != EINTR)
			break;
		s->rests = false;
		now = clock_mono_s();
		for (int i = n - 1; i >= 0; i--) { /* drop_connection moves the last one here */
			struct peer_connection *c = s->connection[i];

			if ((p[2 + i].revents && !serve_connection(s, c)) || now - c->since > allowed_silence(c))
				drop_connection(s, i);
		}
		if (p[1].revents)
			accept_client(s);
	}
	return NULL;
}

int peer_server_open(struct peer_server **ret, struct peers *p, int listener, struct err *err)
{
	struct peer_server *s = mem_zalloc(sizeof(*s));
	int rc;

	s->peers = p;
	s->listener = listener;
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = s->wake < 0 ? errno : thread_start(&s->thread, run_peer_server, s);
	s->started = !rc;
	if (rc) {
		peer_server_close(s);
		return err_set_errno(err, rc, "cannot start the thread that serves the cache to other nodes");
	}
	*ret = s;
	return 0;
}

void peer_server_close(struct peer_server *s)
{
	const uint64_t one = 1;

	if (!s)
		return;
	atomic_store(&s->stop, true);
	if (s->started && write(s->wake, &one, sizeof(one)) == (ssize_t)sizeof(one))
		pthread_join(s->thread, NULL);
	while (s->n)
		drop_connection(s, 0);
	while (s->n_blocks)
		free(s->block[--s->n_blocks]);
	if (s->wake >= 0)
		close(s->wake);
	close(s->listener);
	free(s);
}
