/* rank.h: what one rank of a run works with: its configuration, its seat, its communicators and its backend. Knows
 * neither models nor data, and nothing of steps. */
#ifndef DPT_PROGRAM_RANK_H
#define DPT_PROGRAM_RANK_H

#include "trainer/backends/backend.h"
#include "trainer/comm/comm.h"
#include "trainer/comm/flight.h"
#include "trainer/config/config.h"
#include "trainer/launch/rank_context.h"
#include "trainer/program/devices.h"
#include "trainer/strategies/strategy.h"

struct rank {
	const struct run_config *cfg;
	const struct rank_context *seat;
	struct comm *comm; /* of all ranks; NULL: it meets no others (a plan) */
	struct comm *lane[STREAM_COUNT][GROUP_COUNT]; /* split from it, as the strategy asks; else NULL */
	struct flight_pulse *pulse; /* with several ranks: its sign of life */
	struct bootstrap *net; /* with several machines: to all other ranks */
	const char *link;      /* and what carries bytes between them: "ucx", "mpi"; else NULL */
	struct comm *saving; /* where ranks hold parts: split from it too, for the threads that save; else NULL */
	const struct backend *backend; /* NULL until rank_open_backend */
	char why[512];	/* why --backend auto took it in the place of another; "": it took the first */
	void *module;
	int64_t device_room; /* bytes free on its device when that was opened; 0: it has none */
	struct devices *devices; /* how its device meets the others'; NULL: hosts meet, or nobody */
	const char *described; /* a GPU that is not here, of a plan (backend_opts); NULL: what is here */
	bool by_rule; /* kernels are never chosen by the clock: --deterministic, or nothing will be run */
};

struct rank rank_of(const struct run_config *cfg, const struct rank_context *seat); /* both are borrowed; nothing is open yet */
/* Opens the communicators: a rank that ends is missed by the others from now on. */
int rank_meet(struct rank *r, struct err *err);
int rank_open_backend(struct rank *r, struct err *err);
int rank_open_module(struct rank *r, struct err *err); /* part of it: r->backend's, as the flags ask */
void rank_close(struct rank *r);

bool rank_is_root(const struct rank *r);
struct comm *rank_comm(const struct rank *r); /* for collectives that the host asks for, between programs */
struct precision rank_precision(const struct rank *r);

struct strategy_opts rank_sharing(const struct rank *r); /* what the ranks' strategy is asked for */
int rank_share(const struct rank *r); /* whose part of each global batch it works on, of world / stages parts */
struct kernel_env rank_env(const struct rank *r);	 /* of kernels that meet nobody */

void rank_at_step(struct rank *r, int64_t step); /* what is recorded of it from now on belongs to that step */
void rank_limit(struct rank *r, double seconds); /* of later waits for another rank */
int64_t rank_sent(const struct rank *r);	 /* bytes so far to other ranks, by all communicators */
const char *rank_transport(const struct rank *r); /* "self", "shm", "shm and ucx", "shm and mpi" */
int64_t rank_sent_nodes(const struct rank *r);	 /* of them to other machines */
void rank_abort(struct rank *r);		 /* makes the others' collectives fail */

#endif
