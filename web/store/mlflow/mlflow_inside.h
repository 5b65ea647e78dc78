/* mlflow_inside.h: what the kinds of changes of this room share; on the writer's thread where a struct state is given.
 * Private to the room. */
#ifndef DPT_STORE_MLFLOW_INSIDE_H
#define DPT_STORE_MLFLOW_INSIDE_H

#include "web/store/mlflow/mlflow.h"
#include "web/store/write/change.h"

/* copy of every kind: struct mlflow_op is in c->op.more then, points without a model in c->in alone. */
int mlflow_copy(struct change *c, const struct ingest_op *op, struct err *err);

/* An active experiment or run. 1, 0 when it was refused, negative failed. */
int mlflow_experiment_need(struct state *st, struct change *c, int64_t id, struct err *err);
int mlflow_run_need(struct state *st, struct change *c, struct state_run **ret, struct err *err);

/* The points of a write that name a model. */
int mlflow_model_points(struct state *st, const struct mlflow_op *op, struct err *err);

#endif
