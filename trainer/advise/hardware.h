/* hardware.h: a machine as a plan sees it: how fast nodes run, how fast ranks tell each other things, how much memory
 * there is. Read from a file of schema/hardware/hardware.schema.json, which `dptrain bench --calibrate` writes, or by
 * the name of one that is shipped. */
#ifndef DPT_ADVISE_HARDWARE_H
#define DPT_ADVISE_HARDWARE_H

#include <stdbool.h>
#include <stddef.h>

#include "tracker/base/err.h"

enum { HARDWARE_NODES = 4096, HARDWARE_POINTS = 64, HARDWARE_TEXT = 64 };

/* A node that was timed, or a square product of a table. */
struct hardware_node {
	char op[HARDWARE_TEXT];
	char dtype[8];
	double flops, bytes, seconds;
};

struct hardware_bandwidth { /* of an operation element by element */
	double bytes; /* working set */
	double rate;  /* bytes a second */
};

struct hardware_collective {
	char op[16]; /* allreduce, all_gather, reduce_scatter, send */
	double bytes, seconds;
	int ranks;
	bool between; /* machines */
};

struct hardware_link {
	double latency_s; /* of one message */
	double rate;	  /* bytes a second that one ring gets; 0: there is no such link */
	double rings;	  /* rate of gathers and scatters at once, by that of one of them; 1 and up, 0 as 1 */
};

struct hardware {
	char name[HARDWARE_TEXT];
	double memory_bytes;  /* of a device, or of the machine where ranks share it */
	bool shared;	      /* ranks of a machine share memory_bytes */
	int ranks_per_node;
	int threads_per_rank; /* when nodes were timed; 0: not known */
	double alone;	      /* seconds of a node beside which no other rank computes, by those that were timed */
	double process_bytes; /* that a rank's process takes beside what is planned: code, libraries, what they keep */
	double host_bytes;    /* memory of the machine behind its devices; 0: none to offload to */
	double host_rate;     /* bytes a second between a device and that memory */
	double overlap;	      /* share of communication that can lie beside computation: 1 where it takes no core */
	double rings;	      /* rate of several rings at once, by that of one */
	double spread;	      /* of the seconds of equal runs, relative */
	double samples_per_s; /* that the loader delivers to a machine; 0: not known */
	struct hardware_link within, between; /* ranks of one machine, machines */
	struct hardware_node *nodes;
	int n_nodes;
	char *device; /* a GPU in the words of cuDNN's device properties (JSON); NULL: not described */
	struct hardware_bandwidth bandwidth[HARDWARE_POINTS];
	int n_bandwidth; /* 0: a description, without rates; there are no seconds of it */
	struct hardware_collective collectives[HARDWARE_POINTS];
	int n_collectives;
};

/* text: a path, or the name of a shipped file ("a100-40gb-x8"). ERR_USAGE, naming file and member. */
int hardware_open(struct hardware *ret, const char *text, struct err *err);
/* The same, with the rates that seconds follow from. */
int hardware_open_rated(struct hardware *ret, const char *text, struct err *err);
void hardware_done(struct hardware *h); /* a zeroed struct is fine */

/* Seconds of a node of that op, in that type, with so many operations and bytes of operands: from the timed nodes of
 * that op nearest in both, else from products and bandwidth, whichever bounds it. */
double hardware_node_s(const struct hardware *h, const char *op, const char *dtype, double flops, double bytes);

/* Seconds of a collective of so many bytes (a gather's or a scatter's whole), over ranks on so many machines. */
double hardware_collective_s(const struct hardware *h, const char *op, double bytes, int ranks, int nodes);

/* Where calibration writes, and a plan of this machine looks: $XDG_CONFIG_HOME/dptrain/hardware.json. */
int hardware_place(char *ret, size_t n, struct err *err);

#endif
