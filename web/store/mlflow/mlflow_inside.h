/* tracking_apply.h: the parts of tracking.h, one function a group of kinds; each runs on the writer's thread, inside its
 * transaction, and refuses before it writes. Private to web/store. */
#ifndef DPT_STORE_TRACKING_APPLY_H
#define DPT_STORE_TRACKING_APPLY_H

#include "web/store/mlflow/mlflow.h"
#include "web/store/write/apply.h"

typedef int tracking_fn(struct state *st, struct apply_job *job, const struct tracking_op *op, struct err *err);

tracking_fn tracking_experiment_new, tracking_experiment_change, tracking_run_new, tracking_run_write, tracking_run_untag,
	tracking_inputs, tracking_outputs, tracking_model_new, tracking_model_change, tracking_artifact;

/* An active experiment or run. 1, 0 when it was refused, negative failed. */
int tracking_need_experiment(struct state *st, struct apply_job *job, int64_t id, struct err *err);
int tracking_need_run(struct state *st, struct apply_job *job, const char *uuid, struct state_run **ret, struct err *err);

/* The points of a write that name a model. */
int tracking_model_points(struct state *st, const struct tracking_op *op, struct err *err);

#endif
