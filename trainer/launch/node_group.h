/* node_group.h: the launchers of a job on several machines: how they find each other and count the ranks, and what they tell
 * each other while it runs. All speak with node 0's, which hands on. A launcher that ends or falls silent is noticed.
 * Knows no processes; prints nothing. */
#ifndef DPT_LAUNCH_NODE_GROUP_H
#define DPT_LAUNCH_NODE_GROUP_H

#include <poll.h>
#include <stdbool.h>

#include "tracker/base/err.h"
#include "trainer/launch/job_result.h"

#define NODE_GROUP_WAIT_S 120.0 /* --rdzv-timeout, when not given */

struct node_group_opts {
	int count;	  /* of machines */
	int least;	  /* so many are enough when the others have not come within wait_s */
	int self;	  /* this one's number; -1: in the order in which they come */
	const char *host; /* of node 0 */
	int port;
	const char *key;  /* known to the job's nodes alone */
	int nproc;	  /* ranks of this machine */
	double wait_s;
};

struct node_group;

/* All launchers have met. With self -1 whoever has the address and finds the port free is node 0. Machines that did not
 * come, where enough did, are lost from the start, with as many ranks as node 0 has: node_group_shrink drops them. */
int node_group_open(struct node_group **ret, const struct node_group_opts *o, struct err *err);
void node_group_close(struct node_group *n); /* NULL is fine */

int node_group_self(const struct node_group *n);
int node_group_count(const struct node_group *n); /* of machines; those that are lost still have their numbers */
int node_group_left(const struct node_group *n);	/* of them not lost */
int node_group_world(const struct node_group *n);	 /* ranks of all */
int node_group_first(const struct node_group *n);	 /* number of this machine's first rank */
const char *node_group_key(const struct node_group *n);

/* Where the ranks meet in their turn: rank 0 inherits a socket that listens there already (the others -1). */
const char *node_group_host(const struct node_group *n);
int node_group_ranks_port(const struct node_group *n);
int node_group_ranks_listener(const struct node_group *n);

/* What launchers tell each other. */
enum node_group_kind {
	NODE_GROUP_ALIVE = 1, /* every second */
	NODE_GROUP_STOP,	 /* a signal asked the job to end: number */
	NODE_GROUP_FAILED,	 /* a rank has failed: number; the job ends */
	NODE_GROUP_ENDED,	 /* all ranks of this machine have ended: verdict */
	NODE_GROUP_GONE,	 /* node 0 says that the job goes on without that machine: number */
	NODE_GROUP_VERDICT,	 /* of the whole job, from node 0; number 1: all start again */
	NODE_GROUP_LOST,	 /* nobody says it: that machine's launcher is gone, or silent for too long; verdict says so */
	NODE_GROUP_SILENT,	 /* nobody says it: for 3 s nothing came from there */
};

struct node_group_word {
	int kind, node, number;
	struct job_result verdict;
};

/* To all others (through node 0, who hands on). */
void node_group_say(struct node_group *n, const struct node_group_word *w);

/* That machine is lost too, as node 0 says. */
void node_group_lose(struct node_group *n, int node);
bool node_group_lost(const struct node_group *n, int node);

/* From now on ranks are counted without those of machines that are lost. */
void node_group_shrink(struct node_group *n);

/* The next thing that was heard or noticed; false: nothing (now). silent_s: after so long a launcher is lost. */
bool node_group_hear(struct node_group *n, double silent_s, struct node_group_word *ret);

/* Fills p (node_group_count elements) for poll(2); returns how many. */
int node_group_poll(const struct node_group *n, struct pollfd *p);

#endif
