/* SPDX-License-Identifier: Apache-2.0 */
/* bootstrap.c: connects all members of a job to member 0, authenticates both ends with the job's key, and exchanges
 * data in rounds through member 0. */
#include "trainer/comm/bootstrap.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/sha256.h"
#include "tracker/mem/mem.h"

#define MAGIC UINT64_C(0x31306574706b7264)
#define MESSAGE_BYTES_MAX ((size_t)16 << 20)
#define PENDING_MAX 64	      /* connections that are not authenticated yet, at once */
#define HANDSHAKE_WAIT_S 30.0 /* a member sends its hello at once, as soon as its overloaded machine lets it */
#define RETRY_S 0.02
#define LINGER_S 3.0 /* members that connect this much later still receive the reason of a failure */
#define ABSENT (-1)
#define REFUSED (-2) /* it has received the reason of a failed start */
#define NOTICE_S 5.0 /* member 0 names the members it waits for after this time */
#define NONCE_BYTES 32
#define PROOF_BYTES 32

/* Greeting and hello begin with the same fields in every version. */
struct bootstrap_greeting { /* member 0 sends it first */
	uint64_t magic;
	uint32_t version, unused;
	unsigned char nonce[NONCE_BYTES];
};

struct bootstrap_hello {
	uint64_t magic;
	uint32_t version, unused;
	unsigned char nonce[NONCE_BYTES];
	int32_t self, count;
	unsigned char proof[PROOF_BYTES];
};

struct bootstrap_welcome {
	unsigned char proof[PROOF_BYTES];
	int32_t self; /* the number that the member has in this job */
	int32_t code; /* not 0: refused; text is the reason */
	char text[sizeof(((struct err *)0)->text)];
};

struct message_frame { /* in front of each message of a member */
	int32_t code;  /* 0, or this member's error: bytes are then its text */
	uint32_t bytes;
};

struct pending_member {
	int fd;
	double until_s;
	size_t have;
	struct bootstrap_hello hello;
	unsigned char nonce[NONCE_BYTES];
};

struct bootstrap {
	struct bootstrap_opts o;
	char key[BOOTSTRAP_KEY_BYTES];
	int self, listener;
	int *fd; /* by member; or ABSENT, REFUSED */
	struct pending_member *pending;
	uint32_t other_version;	 /* protocol version of a foreign program that connected; 0: none did */
	unsigned char *gathered; /* the messages of all members in the last round */
	size_t *at;		 /* offsets into gathered by member, then the end */
};

/* HMAC over both sides' nonces. The role is part of the text, so that a proof cannot be sent back to its author. */
static void compute_proof(const char *key, const char *who, const unsigned char *nonce, const struct bootstrap_hello *h,
			  unsigned char ret[PROOF_BYTES])
{
	unsigned char text[16 + 2 * NONCE_BYTES + 2 * sizeof(int32_t)] = { 0 };

	snprintf((char *)text, 16, "%s", who);
	memcpy(text + 16, nonce, NONCE_BYTES);
	memcpy(text + 16 + NONCE_BYTES, h->nonce, NONCE_BYTES);
	memcpy(text + 16 + 2 * NONCE_BYTES, &h->self, sizeof(h->self));
	memcpy(text + 16 + 2 * NONCE_BYTES + sizeof(h->self), &h->count, sizeof(h->count));
	sha256_hmac(key, text, sizeof(text), ret);
}

static int draw_nonce(unsigned char nonce[NONCE_BYTES], struct err *err)
{
	if (getrandom(nonce, NONCE_BYTES, 0) == NONCE_BYTES)
		return 0;
	return err_set_errno(err, errno, "cannot get random bytes");
}

static int connect_once(const struct bootstrap *x, double until_s, int *ret_fd, struct err *err)
{
	return x->o.job ? local_socket_connect(x->o.job, ret_fd, err)
			: tcp_connect(x->o.host, x->o.port, until_s, ret_fd, err);
}

static bool is_host(const struct bootstrap *x)
{
	return x->o.job ? x->o.self == 0 : x->o.listener >= 0;
}

static bool has_failed(const struct bootstrap *x)
{
	return x->o.failure && x->o.failure->code;
}

/* ---- member 0 ---- */

static int first_missing_member(const struct bootstrap *x)
{
	int i = 1;

	while (i < x->o.count && x->fd[i] != ABSENT)
		i++;
	return i;
}

static bool enough_members(const struct bootstrap *x)
{
	int here = 1;

	for (int i = 1; i < x->o.count; i++)
		here += x->fd[i] >= 0;
	return here >= (x->o.least > 0 ? x->o.least : x->o.count);
}

static void drop_pending(struct pending_member *s)
{
	close(s->fd);
	s->fd = -1;
}

/* Greets a connection; where all places are taken, the oldest gives up its own. */
static void accept_pending(struct bootstrap *x)
{
	struct bootstrap_greeting g = { .magic = MAGIC, .version = BOOTSTRAP_VERSION };
	struct pending_member *oldest = x->pending;
	struct err ignored;
	int fd = tcp_accept(x->listener);

	if (fd < 0)
		return;
	if (x->o.job && !local_socket_is_own(fd)) {
		close(fd);
		return;
	}
	for (int i = 0; i < PENDING_MAX && oldest->fd >= 0; i++)
		if (x->pending[i].fd < 0 || x->pending[i].until_s < oldest->until_s)
			oldest = &x->pending[i];
	if (oldest->fd >= 0)
		drop_pending(oldest);
	if (draw_nonce(g.nonce, &ignored) || send(fd, &g, sizeof(g), MSG_NOSIGNAL) != (ssize_t)sizeof(g)) {
		close(fd);
		return;
	}
	*oldest = (struct pending_member){ .fd = fd, .until_s = clock_mono_s() + HANDSHAKE_WAIT_S };
	memcpy(oldest->nonce, g.nonce, NONCE_BYTES);
}

/* Returns the number of an authenticated member; negative: it contradicts the job (err). */
static int assign_member_number(const struct bootstrap *x, const struct bootstrap_hello *h, struct err *err)
{
	const char *what = x->o.what;

	if (h->count != x->o.count)
		return err_set(err, ERR_USAGE,
			       "%s 0 was started for %d %ss, another one for %d: give all the same number", what,
			       x->o.count, what, h->count);
	if (h->self == BOOTSTRAP_ANY)
		return first_missing_member(x);
	if (h->self < 0 || h->self >= h->count)
		return err_set(err, ERR_USAGE, "%s %d of %d: there is no such number", what, h->self, h->count);
	if (h->self == 0 || x->fd[h->self] >= 0)
		return err_set(err, ERR_EXISTS, "two %ss claim to be %s %d of the job", what, what,
			       x->o.first + h->self);
	return h->self;
}

/* Checks a complete hello: the connection becomes a member's or is closed. Negative: the member contradicts the job. */
static int admit_pending(struct bootstrap *x, struct pending_member *s, struct err *err)
{
	struct bootstrap_welcome w = { .code = 0 };
	unsigned char proof[PROOF_BYTES];
	struct err ignored;
	int number;

	compute_proof(x->key, "guest", s->nonce, &s->hello, proof);
	if (s->hello.magic != MAGIC || !sha256_proof_equal(proof, s->hello.proof, sizeof(proof))) {
		drop_pending(s);
		return 0;
	}
	number = assign_member_number(x, &s->hello, err);
	w.self = number;
	w.code = number < 0 ? number : 0;
	snprintf(w.text, sizeof(w.text), "%s", number < 0 ? err->text : "");
	compute_proof(x->key, "host", s->nonce, &s->hello, w.proof);
	if (tcp_send(s->fd, &w, sizeof(w), clock_mono_s() + HANDSHAKE_WAIT_S, &ignored) || number < 0 ||
	    number >= x->o.count) {
		drop_pending(s);
		return number < 0 ? number : 0;
	}
	x->fd[number] = s->fd;
	s->fd = -1;
	return 0;
}

static int read_pending_hello(struct bootstrap *x, struct pending_member *s, struct err *err)
{
	const int rc = tcp_recv_part(s->fd, &s->hello, sizeof(s->hello), &s->have);

	if (rc < 0) {
		drop_pending(s);
		return 0;
	}
	if (s->have >= offsetof(struct bootstrap_hello, nonce) && s->hello.magic == MAGIC &&
	    s->hello.version != BOOTSTRAP_VERSION) {
		x->other_version = s->hello.version;
		drop_pending(s);
		return 0;
	}
	return rc ? admit_pending(x, s, err) : 0;
}

/* A member of this machine, which another program should have started. */
static int fail_absent_process(const struct bootstrap *x, int number, struct err *err)
{
	const char *origin = x->o.origin;

	return err_set(err, ERR_PEER, "%s %d did not start within %.0f s%s%s%s", x->o.what, number, x->o.wait_s,
		       origin ? ", but " : "", origin ? origin : "",
		       origin ? ": start it, or unset these variables" : "");
}

static int fail_missing_member(const struct bootstrap *x, struct err *err)
{
	const int missing = x->o.first + first_missing_member(x);
	char hint[160] = "";

	if (x->o.job)
		return fail_absent_process(x, missing, err);
	if (x->other_version)
		snprintf(hint, sizeof(hint),
			 "; another dptrain connected (protocol version %u, this one %u): start the same version on "
			 "all machines",
			 (unsigned)x->other_version, BOOTSTRAP_VERSION);
	else if (!strncmp(x->o.host, "127.", 4) || !strcmp(x->o.host, "localhost") || !strcmp(x->o.host, "::1"))
		snprintf(hint, sizeof(hint),
			 "; only this machine reaches that address: use one that the other machines reach");
	return err_set(err, ERR_PEER, "%s %d of %d did not connect to %.100s port %d within %.0f s%s", x->o.what,
		       missing, x->o.count, x->o.host, x->o.port, x->o.wait_s, hint);
}

/* Explains the end of a connected member: it has sent its reason if it could. */
static int fail_ended_member(const struct bootstrap *x, int i, struct err *err)
{
	const double until_s = clock_mono_s() + RETRY_S;
	char reason[sizeof(err->text)] = "";
	struct message_frame f = { 0 };
	struct err lost;

	if (tcp_recv(x->fd[i], &f, sizeof(f), until_s, &lost) || !f.code)
		return err_set(err, ERR_PEER, "%s %d ended while the %ss were starting", x->o.what, x->o.first + i,
			       x->o.what);
	tcp_recv(x->fd[i], reason, f.bytes < sizeof(reason) ? f.bytes : sizeof(reason) - 1, until_s, &lost);
	return err_set(err, ERR_PEER, "%s %d could not start: %.400s", x->o.what, x->o.first + i, reason);
}

/* Polls the listener, the pending connections and the members once. */
static int poll_members(struct bootstrap *x, struct pollfd *p, double left_s, struct err *err)
{
	int n = 0, rc = 0;

	p[n++] = (struct pollfd){ .fd = x->listener, .events = POLLIN };
	for (int i = 0; i < PENDING_MAX; i++) {
		if (x->pending[i].fd >= 0 && clock_mono_s() > x->pending[i].until_s)
			drop_pending(&x->pending[i]);
		p[n++] = (struct pollfd){ .fd = x->pending[i].fd, .events = POLLIN };
	}
	for (int i = 1; i < x->o.count; i++)
		p[n++] = (struct pollfd){ .fd = x->fd[i], .events = POLLRDHUP };
	if (poll(p, (nfds_t)n, (int)((left_s < 1 ? left_s : 1) * 1000) + 1) <= 0)
		return 0;
	for (int i = 1; i < x->o.count; i++)
		if (p[PENDING_MAX + i].revents)
			return fail_ended_member(x, i, err);
	for (int i = 0; !rc && i < PENDING_MAX; i++)
		if (x->pending[i].fd >= 0 && p[1 + i].revents)
			rc = read_pending_hello(x, &x->pending[i], err);
	if (!rc && p[0].revents)
		accept_pending(x);
	return rc;
}

static void send_to_members(struct bootstrap *x, const struct message_frame *f, const void *bytes)
{
	double until_s = clock_mono_s() + x->o.wait_s;
	struct err ignored;

	for (int i = 1; i < x->o.count; i++)
		if (x->fd[i] >= 0 && !tcp_send(x->fd[i], f, sizeof(*f), until_s, &ignored))
			tcp_send(x->fd[i], bytes, f->bytes, until_s, &ignored);
}

/* Sends the reason of a failed start to all connected members, which leave. */
static void refuse_members(struct bootstrap *x, const struct err *why)
{
	struct message_frame f = { .code = why->code, .bytes = (uint32_t)strlen(why->text) };

	send_to_members(x, &f, why->text);
	for (int i = 1; i < x->o.count; i++)
		if (x->fd[i] >= 0) {
			close(x->fd[i]);
			x->fd[i] = REFUSED;
		}
}

/* Member 0: waits until all members, or enough of them by the deadline, are connected and authenticated. After a
 * failure those that connect a little later receive the reason too. */
static int gather_members(struct bootstrap *x, struct err *err)
{
	struct pollfd *p = mem_array((size_t)x->o.count + PENDING_MAX + 1, sizeof(*p));
	double until_s = clock_mono_s() + (has_failed(x) ? fmin(x->o.wait_s, LINGER_S) : x->o.wait_s);
	double notice_s = x->o.waits ? clock_mono_s() + NOTICE_S : INFINITY;
	struct err why = ERR_INIT;

	if (has_failed(x))
		why = *x->o.failure;
	x->pending = mem_array(PENDING_MAX, sizeof(*x->pending));
	for (int i = 0; i < PENDING_MAX; i++)
		x->pending[i].fd = -1;
	while (first_missing_member(x) < x->o.count) {
		const double left_s = until_s - clock_mono_s();
		struct err e = ERR_INIT;

		if (why.code)
			refuse_members(x, &why);
		if (left_s <= 0) {
			if (!why.code && !enough_members(x))
				fail_missing_member(x, &why);
			break;
		}
		if (clock_mono_s() > notice_s) {
			x->o.waits(x->o.origin);
			notice_s = INFINITY;
		}
		if (poll_members(x, p, left_s, &e) && !why.code) {
			why = e;
			until_s = clock_mono_s() + LINGER_S;
		}
	}
	for (int i = 0; i < PENDING_MAX; i++)
		if (x->pending[i].fd >= 0)
			drop_pending(&x->pending[i]);
	free(p);
	if (!why.code)
		return 0;
	refuse_members(x, &why);
	return err_set(err, why.code, "%s", why.text);
}

static int listen_and_gather(struct bootstrap *x, struct err *err)
{
	int rc = 0;

	if (x->o.job)
		rc = local_socket_listen(x->o.job, &x->listener, err);
	if (rc == ERR_EXISTS)
		err_set(err, rc, "two %ss claim to be %s %d of the job", x->o.what, x->o.what, x->o.first);
	if (!rc)
		rc = gather_members(x, err);
	if (x->o.job && x->listener >= 0)
		close(x->listener);
	return rc;
}

/* ---- the others ---- */

static int fail_foreign_host(const struct bootstrap *x, const char *why, struct err *err)
{
	char place[160];

	if (x->o.job)
		snprintf(place, sizeof(place), "the socket of job %.100s", x->o.job);
	else
		snprintf(place, sizeof(place), "%.100s port %d", x->o.host, x->o.port);
	return err_set(err, ERR_PEER,
		       "what listens at %s is not %s %d of this job (%s): another program, another job, or another "
		       "DPTRAIN_JOB_KEY",
		       place, x->o.what, x->o.first, why);
}

/* Exchanges proofs with member 0. ERR_PEER: the listener is not member 0 of this job. */
static int authenticate_with_host(struct bootstrap *x, int fd, struct err *err)
{
	double until_s = clock_mono_s() + HANDSHAKE_WAIT_S;
	struct bootstrap_hello h = { .magic = MAGIC, .version = BOOTSTRAP_VERSION, .self = x->o.self,
				     .count = x->o.count };
	unsigned char proof[PROOF_BYTES];
	struct bootstrap_greeting g;
	struct bootstrap_welcome w;
	int rc = tcp_recv(fd, &g, sizeof(g), until_s, err);

	if (rc)
		return fail_foreign_host(x, "it sends no greeting", err);
	if (g.magic != MAGIC)
		return fail_foreign_host(x, "it speaks another protocol", err);
	if (g.version != BOOTSTRAP_VERSION) {
		/* so that it can report the version */
		tcp_send(fd, &h, offsetof(struct bootstrap_hello, nonce), until_s, err);
		return err_set(err, ERR_UNSUPPORTED,
			       "%s 0 is another dptrain (protocol version %u, this one %u): start the same version "
			       "on all machines", x->o.what, (unsigned)g.version, BOOTSTRAP_VERSION);
	}
	rc = draw_nonce(h.nonce, err);
	if (rc)
		return rc;
	compute_proof(x->key, "guest", g.nonce, &h, h.proof);
	if (tcp_send(fd, &h, sizeof(h), until_s, err) || tcp_recv(fd, &w, sizeof(w), until_s, err))
		return fail_foreign_host(x, "it rejects the key", err);
	compute_proof(x->key, "host", g.nonce, &h, proof);
	if (!sha256_proof_equal(proof, w.proof, sizeof(proof)))
		return fail_foreign_host(x, "it does not know the key", err);
	if (w.code)
		return err_set(err, w.code, "%.*s", (int)sizeof(w.text) - 1, w.text);
	if (w.self < 1 || w.self >= x->o.count)
		return err_set(err, ERR_PEER, "all %d %ss are connected already", x->o.count, x->o.what);
	x->self = w.self;
	x->fd[0] = fd;
	return 0;
}

/* Tries until the deadline. After a failed start the host's reason is the error. */
static int connect_to_host(struct bootstrap *x, struct err *err)
{
	double until_s = clock_mono_s() + x->o.wait_s;
	struct err last = ERR_INIT;
	int fd = -1, rc;

	for (;;) {
		rc = connect_once(x, until_s, &fd, &last);
		if (rc != ERR_PEER)
			break;
		if (clock_mono_s() + RETRY_S >= until_s && x->o.job)
			return fail_absent_process(x, x->o.first, err);
		if (clock_mono_s() + RETRY_S >= until_s)
			return err_set(err, ERR_PEER, "%s 0 did not answer within %.0f s: %.300s; is that its address?",
				       x->o.what, x->o.wait_s, last.text);
		clock_sleep_s(RETRY_S);
	}
	if (rc)
		return err_set(err, rc, "%s", last.text);
	rc = authenticate_with_host(x, fd, err);
	if (rc)
		close(fd);
	else if (has_failed(x))
		rc = bootstrap_round(x, NULL, 0, x->o.failure, err);
	return rc;
}

int bootstrap_open(struct bootstrap **ret, const struct bootstrap_opts *o, struct err *err)
{
	struct bootstrap *x = mem_zalloc(sizeof(*x));
	int rc;

	*x = (struct bootstrap){ .o = *o, .self = o->self, .listener = o->job ? -1 : o->listener };
	snprintf(x->key, sizeof(x->key), "%s", o->key);
	x->fd = mem_array((size_t)o->count, sizeof(*x->fd));
	x->at = mem_array((size_t)o->count + 1, sizeof(*x->at));
	for (int i = 0; i < o->count; i++)
		x->fd[i] = ABSENT;
	rc = is_host(x) ? listen_and_gather(x, err) : connect_to_host(x, err);
	if (rc) {
		bootstrap_close(x);
		return rc;
	}
	*ret = x;
	return 0;
}

void bootstrap_close(struct bootstrap *x)
{
	if (!x)
		return;
	for (int i = 0; x->fd && i < x->o.count; i++)
		if (x->fd[i] >= 0)
			close(x->fd[i]);
	free(x->fd);
	free(x->pending);
	free(x->gathered);
	free(x->at);
	free(x);
}

int bootstrap_self(const struct bootstrap *x)
{
	return x->self;
}

int bootstrap_count(const struct bootstrap *x)
{
	return x->o.count;
}

int bootstrap_fd(const struct bootstrap *x, int member)
{
	return x->fd[member];
}

void bootstrap_interface(const struct bootstrap *x, char *ret, size_t n)
{
	char name[TCP_NAME_BYTES];
	int fd = -1;

	for (int i = 0; i < x->o.count && fd < 0; i++)
		fd = x->fd[i];
	ret[0] = '\0';
	if (fd < 0)
		return;
	tcp_own_name(fd, name);
	tcp_interface(name, ret, n);
}

/* ---- rounds ---- */

/* Receives the message of member i and appends it after the *used bytes of x->gathered. */
static int read_member_message(struct bootstrap *x, int i, size_t *used, double until_s, struct err *err)
{
	char reason[sizeof(err->text)] = "";
	struct err lost = ERR_INIT;
	struct message_frame f;

	if (tcp_recv(x->fd[i], &f, sizeof(f), until_s, &lost))
		return err_set(err, ERR_PEER, "%s %d is lost: %s", x->o.what, x->o.first + i, lost.text);
	if (f.code) {
		tcp_recv(x->fd[i], reason, f.bytes < sizeof(reason) ? f.bytes : sizeof(reason) - 1, until_s, &lost);
		return err_set(err, ERR_PEER, "%s %d could not start: %.400s", x->o.what, x->o.first + i, reason);
	}
	if (f.bytes > MESSAGE_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "%s %d sends %u bytes: expected at most %zu", x->o.what, i, f.bytes,
			       MESSAGE_BYTES_MAX);
	x->gathered = mem_realloc(x->gathered, *used + f.bytes + 1);
	if (tcp_recv(x->fd[i], x->gathered + *used, f.bytes, until_s, &lost))
		return err_set(err, ERR_PEER, "%s %d is lost: %s", x->o.what, x->o.first + i, lost.text);
	*used += f.bytes;
	return 0;
}

/* Member 0: receives all messages, then sends the offsets and all messages to every member. */
static int run_host_round(struct bootstrap *x, const void *own, size_t n, struct err *err)
{
	double until_s = clock_mono_s() + x->o.wait_s;
	size_t table = ((size_t)x->o.count + 1) * sizeof(*x->at), used = n;
	struct message_frame f;
	unsigned char *all;

	x->gathered = mem_realloc(x->gathered, n + 1);
	memcpy(x->gathered, own, n);
	x->at[0] = 0;
	for (int i = 1; i < x->o.count; i++) {
		int rc = x->fd[i] < 0 ? 0 : read_member_message(x, i, &used, until_s, err);

		if (rc)
			return rc;
		x->at[i + 1] = used;
	}
	x->at[1] = n;
	if (table + used > UINT32_MAX)
		return err_set(err, ERR_LIMIT, "%zu bytes for the other %ss: expected less than 4 GiB", used,
			       x->o.what);
	all = mem_alloc(table + used);
	memcpy(all, x->at, table);
	memcpy(all + table, x->gathered, used);
	f = (struct message_frame){ .bytes = (uint32_t)(table + used) };
	send_to_members(x, &f, all);
	free(all);
	return 0;
}

static int read_round_answer(struct bootstrap *x, uint32_t bytes, double until_s, struct err *err)
{
	const size_t table = ((size_t)x->o.count + 1) * sizeof(*x->at);

	if (bytes < table)
		return err_set(err, ERR_CORRUPT, "%s 0 sent damaged data", x->o.what);
	x->gathered = mem_realloc(x->gathered, bytes - table + 1);
	if (tcp_recv(x->fd[0], x->at, table, until_s, err) ||
	    tcp_recv(x->fd[0], x->gathered, bytes - table, until_s, err))
		return err_prefix(err, "%s 0 is lost", x->o.what);
	for (int i = 0; i < x->o.count; i++)
		if (x->at[i] > x->at[i + 1] || x->at[i + 1] > bytes - table)
			return err_set(err, ERR_CORRUPT, "%s 0 sent damaged data", x->o.what);
	return 0;
}

/* Waits for member 0's answer; an error is the one that it has sent. */
static int read_answer(struct bootstrap *x, struct message_frame *ret, struct err *err)
{
	double until_s = clock_mono_s() + 2 * x->o.wait_s;
	char reason[sizeof(err->text)] = "";
	struct err ignored;

	if (tcp_recv(x->fd[0], ret, sizeof(*ret), until_s, err))
		return err_prefix(err, "%s %d is lost", x->o.what, x->o.first);
	if (!ret->code)
		return 0;
	tcp_recv(x->fd[0], reason, ret->bytes < sizeof(reason) ? ret->bytes : sizeof(reason) - 1, until_s, &ignored);
	return err_set(err, ret->code, "%s", reason);
}

static int run_guest_round(struct bootstrap *x, const struct message_frame *f, const void *own, struct err *err)
{
	double until_s = clock_mono_s() + 2 * x->o.wait_s;
	struct err ignored; /* member 0 may have refused already: its reason is reported */
	struct message_frame answer;
	int rc;

	if (!tcp_send(x->fd[0], f, sizeof(*f), until_s, &ignored))
		tcp_send(x->fd[0], own, f->bytes, until_s, &ignored);
	if (f->code)
		return 0;
	rc = read_answer(x, &answer, err);
	return rc ? rc : read_round_answer(x, answer.bytes, until_s, err);
}

int bootstrap_round(struct bootstrap *x, const void *own, size_t n, const struct err *failure, struct err *err)
{
	bool failed = failure && failure->code;
	struct message_frame f = { .code = failed ? failure->code : 0,
				   .bytes = (uint32_t)(failed ? strlen(failure->text) : n) };
	struct err reason_sent = ERR_INIT;
	int rc;

	if (n > MESSAGE_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "%zu bytes for the other %ss: expected at most %zu", n, x->o.what,
			       MESSAGE_BYTES_MAX);
	if (!is_host(x)) {
		rc = run_guest_round(x, &f, failed ? failure->text : own, err);
	} else {
		rc = failed ? err_set(&reason_sent, ERR_PEER, "%s 0 could not start: %.400s", x->o.what, failure->text)
			    : run_host_round(x, own, n, &reason_sent);
		if (rc) {
			refuse_members(x, &reason_sent);
			err_set(err, rc, "%s", reason_sent.text);
		}
	}
	return failed ? err_set(err, failure->code, "%s", failure->text) : rc;
}

const void *bootstrap_said(const struct bootstrap *x, int member, size_t *ret_n)
{
	*ret_n = x->at[member + 1] - x->at[member];
	return x->gathered + x->at[member];
}

/* Begins with a round, in which the last member too may report that it cannot take part. */
int bootstrap_share_fds(struct bootstrap *x, int *fd, int n, struct err *err)
{
	int rc = bootstrap_round(x, "", 1, NULL, err);

	if (rc)
		return rc;
	if (!is_host(x))
		return local_socket_take(x->fd[0], fd, n, err);
	for (int i = 1; i < x->o.count; i++)
		local_socket_pass(x->fd[i], fd, n);
	return 0;
}
