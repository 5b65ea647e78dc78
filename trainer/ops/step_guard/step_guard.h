/* step_guard.h: decides in the graph, once per optimiser step, whether the step happens and by what gradients are
 * multiplied. in norm, losses?, state, votes? out step, state (the same tensor, updated). norm: f64 [1] as norm.h
 * leaves it. losses: f64 of any length, summed over the ranks. When one of these numbers is not finite, the step is
 * skipped: nodes that take `step` as an operand then leave parameters and moments as they are. All ranks decide alike
 * because norm and losses are the same numbers on all of them. Clipping as PyTorch's clip_grad_norm_: factor min(1,
 * max_norm / (norm + 1e-6)).
 * votes: f64 [1], summed over the ranks. From STEP_GUARD_BLANK on a rank had nothing to compute with: the step is skipped
 * and counted nowhere, as if it had not been begun.
 *
 * With attr.scaling the state also holds the loss scale of the next step, as PyTorch's GradScaler finds it: halved by a
 * step that was skipped, doubled after 2000 in a row that were not. The scale of this step is page.loss_scale, by which
 * the losses' gradients were made larger: what the step before left in the state. */
#ifndef DPT_OPS_STEP_GUARD_H
#define DPT_OPS_STEP_GUARD_H

#include "trainer/graph/graph.h"

#define STEP_GUARD_SCALE_START 65536.0
#define STEP_GUARD_SCALE_EVERY 2000 /* clean steps before the scale is doubled */

/* step f64 [STEP_GUARD_STEP_VALUES] */
enum {
	STEP_GUARD_FACTOR,  /* of gradients: undoes the loss scale and clips */
	STEP_GUARD_SKIP,    /* not 0: nothing may change */
	STEP_GUARD_UPDATES, /* steps that changed something, this one included: t of the bias corrections */
	STEP_GUARD_STEP_VALUES
};

/* state f64 [STEP_GUARD_STATE_VALUES], persistent; before the first step all zero but the scale */
enum {
	STEP_GUARD_STATE_UPDATES, /* steps so far that changed something */
	STEP_GUARD_STATE_SKIPPED, /* steps so far that did not */
	STEP_GUARD_STATE_ROW,     /* of these, without a good one since */
	STEP_GUARD_STATE_SCALE,   /* loss scale of the next step; 0 without scaling */
	/* Good steps since the scale changed. Without scaling 0, or STEP_GUARD_ENDED: the losses of a step were not finite,
	 * which ends the run; a step that was begun behind it changes nothing either. */
	STEP_GUARD_STATE_CLEAN,
	STEP_GUARD_STATE_VALUES
};

#define STEP_GUARD_STATE_NAME "optimizer.state"
#define STEP_GUARD_ENDED (-1)
#define STEP_GUARD_BLANK 0x1p30 /* more than all other votes of all ranks */

struct step_guard_attr {
	double max_norm; /* 0: no clipping */
	bool scaling;
};

struct step_guard_in {
	struct tensor *norm, *losses, *votes; /* losses, votes: NULL where there are none */
};

/* Returns `step`; NULL once the graph failed. */
struct tensor *step_guard_add(struct graph *g, const struct step_guard_in *in, const struct step_guard_attr *attr);

#endif
