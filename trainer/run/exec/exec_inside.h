/* SPDX-License-Identifier: Apache-2.0 */
/* exec_inside.h: what is the same for every executor: the kind of a step's time that a node counts as, storage for
 * times of nodes, the results that the host reads after a run and what it clears before. */
#ifndef DPT_RUN_EXEC_INSIDE_H
#define DPT_RUN_EXEC_INSIDE_H

#include "tracker/base/clock.h"
#include "trainer/comm/flight.h"
#include "trainer/run/exec/exec.h"

enum exec_time exec_time_of(const struct node *n);

/* The same for a wait for a stream. */
enum exec_time exec_time_of_wait(enum stream s);

const char *exec_time_name(enum exec_time kind); /* phase of a span */

/* Zeroes the seconds of each of the program's nodes, by id; allocated at the first call, freed by the caller. */
void exec_time_begin(double **seconds, const struct program *p);

/* A value that the host reads after a run: a tensor of the program, its place in the results, and its size. */
struct exec_value {
	const struct tensor *tensor; /* NULL: not in this program */
	size_t offset, bytes;	     /* in struct exec_results */
};

#define EXEC_VALUES 5
void exec_values(struct exec_value ret[EXEC_VALUES], const struct program *p);

/* Returns true if the host must clear the program's result, because another stage of a pipeline computes it. */
bool exec_clears(const struct program *p);

/* Returns the most losses of a run of any program. */
int64_t exec_losses_most(const struct prepared *p);

/* ---- exec_host_program.c ----
 * A program as the host executor runs it: the items of each stream, with kernel, operands and waits. */

struct host_item {
	const struct kernel *kernel;
	void *state;
	struct kernel_args args;
	int index;	 /* index in the schedule */
	const int *wait; /* indexed by stream: value that its counter must reach; NULL: nothing to wait for */
	unsigned signal; /* streams that wait for this item */
	bool collective, feeds;
	int slot;
	enum exec_time kind;
	const struct node *node; /* for messages */
	double *seconds;	 /* seconds of all runs; NULL: not profiled */
};

struct host_program {
	const struct program *program;
	struct host_item *items[STREAM_COUNT];
	int n[STREAM_COUNT];
	double *node_seconds; /* by node id */
};

/* What the items of all programs refer to. */
struct host_places {
	const struct prepared *prepared;
	struct step_page *page; /* page of each slot */
};

/* Fills a zeroed program. What it refers to must outlive it. */
void host_program_fill(struct host_program *ep, const struct program *p, const struct host_places *at);
void host_program_done(struct host_program *ep);

/* Times the items of later runs, in node_seconds. */
void host_program_profile(struct host_program *ep);

/* Runs an item's kernel. */
int host_item_run(struct host_item *it, struct err *err);

#endif
