/* SPDX-License-Identifier: Apache-2.0 */
/* bootstrap.h: how the members of a job find each other and exchange data: launchers or ranks on several machines over
 * TCP, and the ranks of one machine that another program started (torchrun, mpirun, srun) over a local socket. Member 0
 * listens, the others connect to it. Each side proves by HMAC of the other's random bytes that it knows the job's key;
 * a connection without the proof is closed and disturbs no member. A failure of one member during the start is reported
 * to all. Not thread-safe. Does not interpret the data. */
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

/* Receives what has arrived of a message of n bytes, *have of which are there. Returns 1: it is complete, 0: not yet,
 * ERR_PEER: the other end has gone. */
int tcp_recv_part(int fd, void *bytes, size_t n, size_t *have);

/* The numeric address of this end, and of the other one; "": unknown. */
void tcp_own_name(int fd, char ret[TCP_NAME_BYTES]);
void tcp_peer_name(int fd, char ret[TCP_NAME_BYTES]);

/* The network interface with this numeric address; "": unknown. */
void tcp_interface(const char *address, char *ret, size_t n);

/* ---- local_socket.c ----
 * Abstract Unix sockets (unix(7)), which leave no file, between the processes of a user. Their name is the job's, which
 * differs from that of every other job of this user on this machine. They transfer like those of tcp.c, and pass file
 * descriptors. */

#define LOCAL_SOCKET_FDS_MAX 8

int local_socket_listen(const char *job, int *ret_fd, struct err *err);	 /* ERR_EXISTS: another process listens */
int local_socket_connect(const char *job, int *ret_fd, struct err *err); /* tries once; ERR_PEER: no process listens */
bool local_socket_is_own(int fd); /* the other end is a process of the same user */

/* fd[n], close-on-exec where they are taken. ERR_PEER: the other end has gone. */
int local_socket_pass(int to, const int *fd, int n);
int local_socket_take(int from, int *fd, int n, struct err *err);

/* ---- bootstrap.c ---- */

#define BOOTSTRAP_VERSION 3 /* raise it when the struct of a message between members changes */
#define BOOTSTRAP_ANY (-1)  /* member 0 assigns the next free number */
#define BOOTSTRAP_KEY_BYTES 256

struct bootstrap_opts {
	const char *what; /* name of a member in messages: "node", "rank" */
	const char *host; /* address of member 0; unused with job */
	int port;
	const char *job; /* name of a local socket by which the members meet; NULL: they meet over TCP */
	int listener;	 /* member 0 over TCP: of tcp_listen, owned by the caller; else -1 */
	int self;     /* 0, another number, or BOOTSTRAP_ANY */
	int count;    /* number of members, the same for all */
	/* member 0: that many members, itself included, are enough once wait_s is over; 0: all are needed */
	int least;
	int first; /* added to members in messages */
	const char *key;
	double wait_s; /* longest wait for all to connect, and for a connected member to send its message */
	/* Optional. What announced the members, for messages: "Slurm announces 4 ranks (SLURM_PROCID=0, …)"; waits is
	 * called once when member 0 has waited for some seconds. */
	const char *origin;
	void (*waits)(const char *origin);
	/* Code not 0: this member cannot take part. bootstrap_open returns it when the others know; they get ERR_PEER,
	 * or of member 0 its error. Waits a moment only for those that are missing. */
	const struct err *failure;
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

/* Collective, over a local socket: fd[n] are made by member 0 and received by the others, whose callers close them. */
int bootstrap_share_fds(struct bootstrap *x, int *fd, int n, struct err *err);

/* The name of this machine's network interface towards the others; "": unknown. */
void bootstrap_interface(const struct bootstrap *x, char *ret, size_t n);

#endif
