/* SPDX-License-Identifier: Apache-2.0 */
/* hardware.h: the machine model of a plan: speed of nodes, speed of communication, size of memory. Read from a file
 * (schema/hardware/hardware.schema.json) that `dptrain bench --calibrate` writes, or by the name of a shipped one. */
#ifndef DPT_ADVISE_HARDWARE_H
#define DPT_ADVISE_HARDWARE_H

#include "tracker/base/err.h"

enum { HARDWARE_NODES = 4096, HARDWARE_POINTS = 64, HARDWARE_TEXT = 64 };

/* A timed node, or a square product. */
struct hardware_node {
	char op[HARDWARE_TEXT];
	char dtype[8];
	double flops, bytes, seconds;
};

struct hardware_bandwidth { /* of an elementwise operation */
	double bytes;	    /* working set */
	double rate;	    /* bytes a second */
};

struct hardware_collective {
	char op[16]; /* allreduce, all_gather, reduce_scatter, send */
	double bytes, seconds;
	int ranks;
	bool between; /* between machines */
};

struct hardware_link {
	double latency_s; /* of one message */
	double rate;	  /* bytes per second of one ring; 0: no such link */
	double rings;	  /* rate of gathers and scatters at once divided by that of one; at least 1, 0 means 1 */
};

struct hardware {
	char name[HARDWARE_TEXT];
	double watts;	      /* of a device at full load, or of the machine if ranks share it; 0: unknown */
	char unverified[256]; /* members without a document in the file, separated by commas */
	double memory_bytes;  /* of a device, or of the machine if ranks share it */
	bool shared;	      /* ranks of a machine share memory_bytes */
	int ranks_per_node;
	int threads_per_rank; /* when nodes were timed; 0: unknown */
	double alone;	      /* seconds of a node without other ranks at work, divided by the timed ones */
	double process_bytes; /* of a rank's process in addition to the plan: code, libraries and their buffers */
	double host_bytes;    /* host memory for offloading; 0: none */
	double host_rate;     /* bytes per second between a device and that memory */
	double overlap;	      /* share of communication that can overlap computation: 1 if it uses no core */
	double rings;	      /* rate of several rings at once divided by that of one */
	double spread;	      /* relative standard deviation of the seconds of equal runs */
	double samples_per_s; /* of the loader on a machine; 0: unknown */
	struct hardware_link within, between; /* ranks of one machine, machines */
	struct hardware_node *nodes;
	int n_nodes;
	char *device; /* a GPU as cuDNN's device properties (JSON); NULL: not described */
	struct hardware_bandwidth bandwidth[HARDWARE_POINTS];
	int n_bandwidth; /* 0: a description without rates, which gives no seconds */
	struct hardware_collective collectives[HARDWARE_POINTS];
	int n_collectives;
};

/* Reads a hardware file. text: a path, or the name of a shipped file ("a100-40gb-x8"). ERR_USAGE names file and member.
 * The caller calls hardware_done. */
int hardware_open(struct hardware *ret, const char *text, struct err *err);
/* The same, but requires the rates from which seconds are estimated. */
int hardware_open_rated(struct hardware *ret, const char *text, struct err *err);
/* The same for the file that a user named; name NULL: the one that --calibrate wrote on this machine. ERR_USAGE. */
int hardware_open_chosen(struct hardware *ret, const char *name, struct err *err);
void hardware_done(struct hardware *h); /* a zeroed struct is fine */

/* Returns the seconds of a node with that op, type, number of operations and bytes of operands: from the nearest timed
 * nodes of the op, else by the roofline of products and bandwidth. */
double hardware_node_s(const struct hardware *h, const char *op, const char *dtype, double flops, double bytes);

/* Returns the seconds of a collective of `bytes` (the whole of a gather or scatter), over ranks on `nodes` machines. */
double hardware_collective_s(const struct hardware *h, const char *op, double bytes, int ranks, int nodes);

/* Returns the name of the i-th shipped file; NULL: there are no more. */
const char *hardware_shipped(int i);

/* Writes the path of this machine's hardware file: $XDG_CONFIG_HOME/dptrain/hardware.json. ERR_USAGE. */
int hardware_place(char *ret, size_t n, struct err *err);

#endif
