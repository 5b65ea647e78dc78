/* SPDX-License-Identifier: Apache-2.0 */
/* costing.h: the cost of a run's model at a micro-batch size, from planned graphs of two and three blocks, which
 * never run: all blocks cost the same. Networks with a fixed number of blocks are planned as a whole. */
#ifndef DPT_TOOLS_COSTING_H
#define DPT_TOOLS_COSTING_H

#include "trainer/advise/plan_search.h"
#include "trainer/program/rank.h"
#include "trainer/program/workload.h"

struct costing;

/* Borrows cfg (resolved), s (open) and h until costing_free. */
struct costing *costing_new(const struct run_config *cfg, const struct workload *s, const struct hardware *h);
/* Costs the same model on another machine; planned graphs are used again. Borrows h until costing_free. */
void costing_set_machine(struct costing *w, const struct hardware *h);
void costing_free(struct costing *w); /* NULL is fine */

/* The callback of struct search_opts; user: a struct costing. Results are cached. */
int costing_model(void *user, const struct model_variant *v, struct advise_model *ret, struct err *err);

/* Properties of a node that determine its seconds. */
struct costing_node {
	const char *dtype; /* compute type */
	double flops, bytes;
};

struct costing_node costing_node(const struct node *n);

#endif
