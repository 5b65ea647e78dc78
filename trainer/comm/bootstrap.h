/* SPDX-License-Identifier: Apache-2.0 */
/* bootstrap.h: connects the members of a job on several machines (launchers, or ranks) over TCP and exchanges data
 * among them. Member 0 listens, the others connect to it. Each side proves by HMAC of the other's random bytes that it
 * knows the job's key; a connection without the proof is closed and disturbs no member. A failure of one member during
 * the start is reported to all. Not thread-safe. Does not interpret the data. */
#ifndef DPT_COMM_BOOTSTRAP_H
#define DPT_COMM_BOOTSTRAP_H

#include "tracker/base/err.h"

/* ---- tcp.c ----
 * TCP connections between the machines of a job: listening, connecting, and complete transfers with a deadline. Sockets
 * are non-blocking and close-on-exec. Does not know the peers or the contents. */

#define TCP_NAME_BYTES 64

/* Listens at an address of this machine; port 0: any free one. ERR_NOENT: host is not this machine's, ERR_EXISTS: the
 * port is in use, ERR_USAGE: host is unknown. */
int tcp_listen(const char *host, int port, int *ret_fd, struct err *err);
int tcp_port(int fd); /* of a listener; 0: unknown */

/* Tries once to connect. ERR_USAGE: host is unknown; ERR_PEER: no answer. */
int tcp_connect(const char *host, int port, double until_s, int *ret_fd, struct err *err);
int tcp_accept(int listener); /* negative: no connection is waiting */

/* Transfers all n bytes, or ERR_PEER: the other end has gone (errno text or "closed"), or until_s (clock_mono_s) has
 * passed. */
int tcp_send(int fd, const void *bytes, size_t n, double until_s, struct err *err);
int tcp_recv(int fd, void *bytes, size_t n, double until_s, struct err *err);

/* The numeric address of this end, and of the other one; "": unknown. */
void tcp_own_name(int fd, char ret[TCP_NAME_BYTES]);
void tcp_peer_name(int fd, char ret[TCP_NAME_BYTES]);

/* The network interface with this numeric address; "": unknown. */
void tcp_interface(const char *address, char *ret, size_t n);

/* ---- bootstrap.c ---- */

#define BOOTSTRAP_VERSION 2 /* raise it when the struct of a message between members changes */
#define BOOTSTRAP_ANY (-1)  /* member 0 assigns the next free number */
#define BOOTSTRAP_KEY_BYTES 256

struct bootstrap_opts {
	const char *what; /* name of a member in messages: "node", "rank" */
	const char *host; /* address of member 0 */
	int port;
	int listener; /* member 0: of tcp_listen, owned by the caller; others -1 */
	int self;     /* 0, another number, or BOOTSTRAP_ANY */
	int count;    /* number of members, the same for all */
	/* member 0: that many members, itself included, are enough once wait_s is over; 0: all are needed */
	int least;
	const char *key;
	double wait_s; /* longest wait for all to connect, and for a connected member to send its message */
};

struct bootstrap;

/* Returns when all members are connected, or enough of them; a missing member sends nothing in any round. ERR_PEER
 * names the missing member, or the reason of another member. */
int bootstrap_open(struct bootstrap **ret, const struct bootstrap_opts *o, struct err *err);
void bootstrap_close(struct bootstrap *x); /* NULL is fine */

int bootstrap_self(const struct bootstrap *x);
int bootstrap_count(const struct bootstrap *x);

/* Collective: every member gets the bytes of all members (any number, at most 16 MiB each). With failure set (code not
 * 0) this member reports that it cannot continue: all others get ERR_PEER, this one gets its own error back. */
int bootstrap_round(struct bootstrap *x, const void *own, size_t n, const struct err *failure, struct err *err);

/* The message of a member in the last round; borrowed until the next round. */
const void *bootstrap_said(const struct bootstrap *x, int member, size_t *ret_n);

/* The connection to that member: member 0 has one to each, the others have one to member 0; else -1. Owned by x. */
int bootstrap_fd(const struct bootstrap *x, int member);

/* The name of this machine's network interface towards the others; "": unknown. */
void bootstrap_interface(const struct bootstrap *x, char *ret, size_t n);

#endif
