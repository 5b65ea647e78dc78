/* costing.h: what a run's model costs at a size of micro-batch, read off its graphs of two and three blocks, which are
 * planned and never run: blocks cost alike. Networks whose number of blocks is fixed are planned whole. */
#ifndef DPT_TOOLS_COSTING_H
#define DPT_TOOLS_COSTING_H

#include "trainer/advise/advise.h"
#include "trainer/program/rank.h"
#include "trainer/program/workload.h"

struct costing;

/* cfg: resolved; s is open and borrowed, as cfg and h are. */
int costing_new(struct costing **ret, const struct run_config *cfg, const struct workload *s, const struct hardware *h,
	     struct err *err);
void costing_free(struct costing *w); /* NULL is fine */

/* As struct search_opts asks: precision is an enum config_precision, recompute an enum config_recompute. user: a
 * struct costing. Each question is answered from memory the second time. */
int costing_model(void *user, int64_t micro, int recompute, int precision, struct advise_model *ret, struct err *err);

/* What a node's seconds depend on. */
struct costing_node {
	const char *dtype; /* in which it computes */
	double flops, bytes;
};

struct costing_node costing_node(const struct node *n);

#endif
