/* SPDX-License-Identifier: Apache-2.0 */
/* node_group.h: the launchers of a job on several machines: they connect to each other, number the ranks, and exchange
 * messages while the job runs. All are connected to node 0's launcher, which forwards. A launcher that ends or is
 * silent is noticed. Knows no processes; prints nothing. */
#ifndef DPT_LAUNCH_NODE_GROUP_H
#define DPT_LAUNCH_NODE_GROUP_H

#include <poll.h>

#include "trainer/launch/job_result.h"

#define NODE_GROUP_WAIT_S 120.0 /* default of --rdzv-timeout */

struct node_group_opts {
	int count;	  /* number of machines */
	int least;	  /* enough nodes to start when the others do not connect within wait_s */
	int self;	  /* this machine's number; -1: assigned in the order of connection */
	const char *host; /* address of node 0 */
	int port;
	const char *key; /* secret of the job */
	int nproc;	 /* ranks of this machine */
	double wait_s;
};

struct node_group;

/* Returns when all launchers are connected. With self -1 the launcher that has the address and finds the port free is
 * node 0. A machine that is missing, where the others are enough, is lost from the start and counted with as many ranks
 * as node 0; node_group_shrink drops it. */
int node_group_open(struct node_group **ret, const struct node_group_opts *o, struct err *err);
void node_group_close(struct node_group *n); /* NULL is fine */

int node_group_self(const struct node_group *n);
int node_group_count(const struct node_group *n); /* number of machines; lost ones keep their numbers */
int node_group_left(const struct node_group *n);  /* machines that are not lost */
int node_group_world(const struct node_group *n); /* ranks of all machines */
int node_group_first(const struct node_group *n); /* number of this machine's first rank */
const char *node_group_key(const struct node_group *n);

/* Where the ranks connect: rank 0 inherits a socket that listens already (-1 on the other nodes). */
const char *node_group_host(const struct node_group *n);
int node_group_ranks_port(const struct node_group *n);
int node_group_ranks_listener(const struct node_group *n);

/* Messages between launchers. */
enum node_group_kind {
	NODE_GROUP_ALIVE = 1, /* every second */
	NODE_GROUP_STOP,      /* number: signal that asked the job to end */
	NODE_GROUP_FAILED,    /* number: rank that has failed; the job ends */
	NODE_GROUP_ENDED,     /* all ranks of this machine have ended: verdict */
	NODE_GROUP_GONE,      /* number: machine without which the job continues; from node 0 */
	NODE_GROUP_VERDICT,   /* verdict of the whole job, from node 0; number 1: restart */
	NODE_GROUP_LOST,   /* not sent: that machine's launcher is gone or silent for too long; verdict is the reason */
	NODE_GROUP_SILENT, /* not sent: no message from that machine for 3 s */
};

struct node_group_word {
	int kind, node, number;
	struct job_result verdict;
};

/* Sends to all others (through node 0, which forwards). */
void node_group_say(struct node_group *n, const struct node_group_word *w);

/* Marks that machine as lost, as node 0 reports. */
void node_group_lose(struct node_group *n, int node);
bool node_group_lost(const struct node_group *n, int node);

/* From now on the ranks of lost machines are not counted. */
void node_group_shrink(struct node_group *n);

/* Returns the next message or event; false: none now. silent_s: a launcher silent for longer is lost. */
bool node_group_hear(struct node_group *n, double silent_s, struct node_group_word *ret);

/* Fills p (node_group_count elements) for poll(2); returns the number of entries. */
int node_group_poll(const struct node_group *n, struct pollfd *p);

#endif
