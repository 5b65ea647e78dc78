/* nodes.h: the launchers of a job on several machines: how they find each other and count the ranks, and what they tell
 * each other while it runs. All speak with node 0's, which hands on. A launcher that ends or falls silent is noticed.
 * Knows no processes; prints nothing. */
#ifndef DPT_LAUNCH_NODES_H
#define DPT_LAUNCH_NODES_H

#include <poll.h>
#include <stdbool.h>

#include "tracker/base/err.h"
#include "trainer/launch/verdict.h"

#define NODES_WAIT_S 120.0 /* --rdzv-timeout, when not given */

struct nodes_opts {
	int count;	  /* of machines */
	int least;	  /* so many are enough when the others have not come within wait_s */
	int self;	  /* this one's number; -1: in the order in which they come */
	const char *host; /* of node 0 */
	int port;
	const char *key;  /* known to the job's nodes alone */
	int nproc;	  /* ranks of this machine */
	double wait_s;
};

struct nodes;

/* All launchers have met. With self -1 whoever has the address and finds the port free is node 0. Machines that did not
 * come, where enough did, are lost from the start, with as many ranks as node 0 has: nodes_shrink drops them. */
int nodes_open(struct nodes **ret, const struct nodes_opts *o, struct err *err);
void nodes_close(struct nodes *n); /* NULL is fine */

int nodes_self(const struct nodes *n);
int nodes_count(const struct nodes *n); /* of machines; those that are lost still have their numbers */
int nodes_left(const struct nodes *n);	/* of them not lost */
int nodes_world(const struct nodes *n);	 /* ranks of all */
int nodes_first(const struct nodes *n);	 /* number of this machine's first rank */
const char *nodes_key(const struct nodes *n);

/* Where the ranks meet in their turn: rank 0 inherits a socket that listens there already (the others -1). */
const char *nodes_host(const struct nodes *n);
int nodes_ranks_port(const struct nodes *n);
int nodes_ranks_listener(const struct nodes *n);

/* What launchers tell each other. */
enum nodes_kind {
	NODES_ALIVE = 1, /* every second */
	NODES_STOP,	 /* a signal asked the job to end: number */
	NODES_FAILED,	 /* a rank has failed: number; the job ends */
	NODES_ENDED,	 /* all ranks of this machine have ended: verdict */
	NODES_GONE,	 /* node 0 says that the job goes on without that machine: number */
	NODES_VERDICT,	 /* of the whole job, from node 0; number 1: all start again */
	NODES_LOST,	 /* nobody says it: that machine's launcher is gone, or silent for too long; verdict says so */
	NODES_SILENT,	 /* nobody says it: for 3 s nothing came from there */
};

struct nodes_word {
	int kind, node, number;
	struct verdict verdict;
};

/* To all others (through node 0, who hands on). */
void nodes_say(struct nodes *n, const struct nodes_word *w);

/* That machine is lost too, as node 0 says. */
void nodes_lose(struct nodes *n, int node);
bool nodes_lost(const struct nodes *n, int node);

/* From now on ranks are counted without those of machines that are lost. */
void nodes_shrink(struct nodes *n);

/* The next thing that was heard or noticed; false: nothing (now). silent_s: after so long a launcher is lost. */
bool nodes_hear(struct nodes *n, double silent_s, struct nodes_word *ret);

/* Fills p (nodes_count elements) for poll(2); returns how many. */
int nodes_poll(const struct nodes *n, struct pollfd *p);

#endif
