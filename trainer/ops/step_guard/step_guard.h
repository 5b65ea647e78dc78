/* SPDX-License-Identifier: Apache-2.0 */
/* step_guard.h: decides in the graph, once per optimiser step, whether the step is applied and how gradients are
 * scaled. in norm, losses?, state, votes? out step, state (the same tensor, updated). norm: f64 [1], result of norm.h.
 * losses: f64 of any length, summed over the ranks. If any of these is not finite, the step is skipped: nodes with the
 * operand `step` then leave parameters and moments unchanged. All ranks decide alike, because norm and losses are equal
 * on all ranks. Clipping follows PyTorch's clip_grad_norm_: factor min(1, max_norm / (norm + 1e-6)). votes: f64 [1],
 * summed over the ranks. At STEP_GUARD_BLANK or more a rank had no data: the step is skipped and not counted, as if it
 * had not started.
 *
 * With attr.scaling the state also holds the loss scale of the next step, by the rule of PyTorch's GradScaler: halved
 * by a skipped step, doubled after 2000 clean steps in a row. The scale of this step is page.loss_scale, which the
 * losses' gradients include: the value that the previous step stored in the state. */
#ifndef DPT_OPS_STEP_GUARD_H
#define DPT_OPS_STEP_GUARD_H

#include "trainer/graph/graph.h"

#define STEP_GUARD_SCALE_START 65536.0
#define STEP_GUARD_SCALE_EVERY 2000 /* clean steps until the scale doubles */

/* step f64 [STEP_GUARD_STEP_VALUES] */
enum {
	STEP_GUARD_FACTOR,  /* factor of gradients: undoes the loss scale and clips */
	STEP_GUARD_SKIP,    /* nonzero: nothing may change */
	STEP_GUARD_UPDATES, /* updates including this one: t of the bias corrections */
	STEP_GUARD_STEP_VALUES
};

/* state f64 [STEP_GUARD_STATE_VALUES], persistent; initially zero except for the scale */
enum {
	STEP_GUARD_STATE_UPDATES, /* steps so far that updated parameters */
	STEP_GUARD_STATE_SKIPPED, /* steps so far that were skipped */
	STEP_GUARD_STATE_ROW,	  /* consecutive skipped steps at the end */
	STEP_GUARD_STATE_SCALE,	  /* loss scale of the next step; 0 without scaling */
	/* With scaling: clean steps since the scale changed. Without: 0, or STEP_GUARD_ENDED if the losses of a step
	 * were not finite, which ends the run; a later step that has already started changes nothing either. */
	STEP_GUARD_STATE_CLEAN,
	STEP_GUARD_STATE_VALUES
};

#define STEP_GUARD_STATE_NAME "optimizer.state"
#define STEP_GUARD_ENDED (-1)
#define STEP_GUARD_BLANK 0x1p30 /* exceeds all other votes of all ranks */

struct step_guard_attr {
	double max_norm; /* 0: no clipping */
	bool scaling;
	bool fixed;	  /* the scale never changes */
	double max_scale; /* 0: no limit */
};

struct step_guard_in {
	struct tensor *norm, *losses, *votes; /* losses, votes: may be NULL */
};

/* Returns `step`; NULL once the graph failed. */
struct tensor *step_guard_add(struct graph *g, const struct step_guard_in *in, const struct step_guard_attr *attr);

#endif
