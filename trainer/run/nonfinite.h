/* SPDX-License-Identifier: Apache-2.0 */
/* nonfinite.h: decides whether a run can continue after a step, and finds the node of a program that was the first to
 * make a non-finite value. That reads every result of a run, so it is for repeating a failed step. */
#ifndef DPT_RUN_NONFINITE_H
#define DPT_RUN_NONFINITE_H

#include "trainer/run/step.h"

enum nonfinite_kind {
	NONFINITE_NONE,	   /* every result was finite */
	NONFINITE_FOREIGN, /* the first one came from another rank */
	NONFINITE_MADE,	   /* a node made it from finite operands */
	NONFINITE_READ,	   /* a node read it from a parameter or the inputs */
};

struct nonfinite {
	enum nonfinite_kind kind;
	char node[128], op[32], tensor[128]; /* tensor: where it was read; "" */
	bool backward, is_nan;
	int64_t sample; /* index in this rank's micro-batch, from 0; -1: not a single sample */
	int64_t micro;
};

struct nonfinite_watch;

/* For programs of p, which is borrowed; NULL: out of memory. */
struct nonfinite_watch *nonfinite_new(const struct prepared *p);
void nonfinite_free(struct nonfinite_watch *w); /* NULL is fine */

/* Returns the callback for exec_call.look, for a run of this program. */
struct exec_look nonfinite_look(struct nonfinite_watch *w, const struct program *p);

const struct nonfinite *nonfinite_first(const struct nonfinite_watch *w);

/* ---- nonfinite_search.c ---- */

/* Collective: ERR_CANCELED when the run cannot continue after a skipped step: its loss is not finite (with a loss scale
 * that may be an overflow, and the run continues), or ten steps in a row were skipped that a lower loss scale would not
 * have repaired. A skipped step changed nothing, so it is repeated on the same batch, node by node. The message names
 * the first node, its op, direction, rank and sample. */
int nonfinite_search_check(struct engine *e, const struct step_result *r, struct err *err);

#endif
