/* SPDX-License-Identifier: Apache-2.0 */
/* rank.h: the resources of one rank of a run: configuration, rank context, communicators and backend. Knows neither
 * models nor data nor steps. */
#ifndef DPT_PROGRAM_RANK_H
#define DPT_PROGRAM_RANK_H

#include "trainer/config/config.h"
#include "trainer/launch/rank_context.h"
#include "trainer/program/devices.h"
#include "trainer/strategies/strategy.h"

struct rank {
	const struct run_config *cfg;
	const struct rank_context *context;
	struct comm *comm;			      /* communicator of all ranks; NULL: none (a plan) */
	struct comm *lane[STREAM_COUNT][GROUP_COUNT]; /* split from comm, as the strategy asks; else NULL */
	struct flight_pulse *pulse;		      /* its heartbeat, with several ranks */
	struct bootstrap *net;			      /* connects all ranks, with several machines */
	const char *link;			      /* transport between machines: "ucx", "mpi"; else NULL */
	struct comm *saving; /* split from comm for the checkpoint threads, where ranks own parts; else NULL */
	const struct backend *backend; /* NULL until rank_open_backend */
	char why[512];		       /* why --backend auto chose it instead of another; "": first choice */
	void *module;
	int64_t device_room;	 /* free bytes of its device when opened; 0: no device */
	struct devices *devices; /* communicators of its device; NULL: hosts communicate, or none */
	const char *described;	 /* GPU of a plan that is not in this machine (backend_opts); NULL: the local one */
	bool by_rule;		 /* kernels are never chosen by timing: --deterministic, or a plan */
	bool sizes_only;	 /* a plan of which only sizes are read */
	/* the model (program_model) of an earlier plan that differs in batch sizes and recomputation only; borrowed.
	 * NULL: programs make their own */
	struct graph *known_model;
};

struct rank rank_of(const struct run_config *cfg, const struct rank_context *context); /* borrows both; opens nothing */
/* Opens the communicators. From now on the other ranks notice when this rank ends. */
int rank_meet(struct rank *r, struct err *err);
int rank_open_backend(struct rank *r, struct err *err);
int rank_open_module(struct rank *r, struct err *err); /* part of it: opens r->backend's module, as the flags ask */
void rank_close(struct rank *r);

bool rank_is_root(const struct rank *r);
struct comm *rank_comm(const struct rank *r); /* communicator for the host's collectives between programs */
struct precision rank_precision(const struct rank *r);
/* Sets the precision of fine-tuning in cfg, which is r->cfg, if no flag does: bf16 if every rank computes faster in it.
 * Collective, after rank_open_backend. */
int rank_choose_precision(struct run_config *cfg, const struct rank *r, struct err *err);

struct strategy_opts rank_sharing(const struct rank *r); /* options of the ranks' strategy */
int rank_share(const struct rank *r); /* the part of each global batch that it computes, of rank_parts */
int rank_parts(const struct run_config *cfg);
/* Returns the compute threads: --threads; where results need not depend on it alone, at most the cores of the rank. */
int rank_threads(const struct rank *r);
struct kernel_env rank_env(const struct rank *r); /* environment of kernels without communication */

void rank_at_step(struct rank *r, int64_t step);  /* step of the collectives recorded from now on */
void rank_limit(struct rank *r, double seconds);  /* limit of later waits for another rank */
int64_t rank_sent(const struct rank *r);	  /* bytes sent to other ranks so far, by all communicators */
const char *rank_transport(const struct rank *r); /* "self", "shm", "shm and ucx", "shm and mpi" */
int64_t rank_sent_nodes(const struct rank *r);	  /* the part sent to other machines */
void rank_abort(struct rank *r);		  /* makes the other ranks' collectives fail */

/* ---- rank_check.c ----
 * Checks before the first step that all ranks will do the same, so that a difference is reported in one line instead of
 * a hanging job: their flags, and the collectives of their programs. Does not know what these are for. */

struct bootstrap;
struct prepared;

/* Collective over the ranks of x, before any other exchange between ranks: compares the flags without the trait LOCAL.
 * ERR_USAGE names the first one that differs. */
int rank_check_flags(const struct run_config *cfg, struct bootstrap *x, struct err *err);

/* Collective over all ranks: each group compares a hash of its list of collectives, in their order. ERR_UNSUPPORTED
 * names the first difference. */
int rank_check_collectives(const struct prepared *p, const struct rank *r, struct err *err);

#endif
