/* SPDX-License-Identifier: Apache-2.0 */
/* planning.h: from the workload of a run to its schedule, its programs and their plan; the kernels that all ranks
 * share; the bytes that a step will send. Allocates no memory for tensors. */
#ifndef DPT_PROGRAM_PLANNING_H
#define DPT_PROGRAM_PLANNING_H

#include "trainer/program/prepare.h"
#include "trainer/program/rank.h"
#include "trainer/program/workload.h"

/* Makes schedule and programs of r->cfg, with the open backend; needs no other ranks. */
int planning_make(struct train_schedule *ret_schedule, struct prepared *ret, const struct rank *r,
		  const struct workload *s, struct err *err);

/* The same on every rank: rank 0 first and alone, so that the others use its kernel choices. Collective. */
int planning_together(struct train_schedule *ret_schedule, struct prepared *ret, const struct rank *r,
		      const struct workload *s, struct err *err);

/* Makes programs that only evaluate s, for batches of these sizes (at most SAMPLER_SHAPES_MAX). */
struct planning_sizes {
	const int64_t *batch;
	int n;
};

int planning_evaluation(struct prepared *ret, const struct rank *r, const struct workload *s,
			const struct planning_sizes *sizes, struct err *err);

/* All ranks use the same kernels. Where a backend chooses by timing, ranks that measure at the same time would disturb
 * each other and choose differently. */
#define KERNELS_BYTES_MAX ((size_t)1 << 20)

/* Appends one choice to the struct buf at user: key and name, each with its 0. */
void kernels_add(void *user, const char *key, const char *name);

/* Applies rank 0's text on every rank; the other ranks' texts are ignored. Collective; the backend has choose. */
int kernels_share(const struct rank *r, const struct buf *text, struct err *err);

/* The communication volume of an optimiser step: the bytes that one rank sends, from its programs. */
enum { COMM_VOLUME_KINDS = 4 }; /* allreduce, all_gather, reduce_scatter, send */

/* Computes the bytes of each kind of collective in a step of that many micro-batches. */
void comm_volume_sent(const struct prepared *p, int64_t micros, double sent[COMM_VOLUME_KINDS]);

/* Appends one line for each kind of collective in a step of that many micro-batches: "  all_gather  12.3 MiB". A sum
 * over n ranks sends 2 (n - 1)/n of its bytes (small ones, where latency counts, n - 1 times as much), the others (n -
 * 1)/n of the whole. A message is sent once for each micro-batch of its schedule. Nothing for one rank. */
void comm_volume_table(const struct prepared *p, int64_t micros, struct buf *out);

#endif
