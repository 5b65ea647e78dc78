/* SPDX-License-Identifier: Apache-2.0 */
/* mlflow_inside.h: shared by the kinds of changes of this room; writer's thread where a struct state is passed.
 * Private to the room. */
#ifndef DPT_STORE_MLFLOW_INSIDE_H
#define DPT_STORE_MLFLOW_INSIDE_H

#include "web/store/mlflow/mlflow.h"
#include "web/store/write/change.h"

/* copy of every kind: puts struct mlflow_op into c->op.more, and points without a model only into c->in. */
void mlflow_copy(struct change *c, const struct ingest_op *op);
int mlflow_decode_points(struct change *c, const struct ingest_op *op, struct err *err); /* groups them by series */

/* Requires an active experiment or run: 1 found, 0 refused, negative: failed. */
int mlflow_experiment_need(struct state *st, struct change *c, int64_t id, struct err *err);
int mlflow_run_need(struct state *st, struct change *c, struct state_run **ret, struct err *err);

/* Stores the points of a write that name a model. */
int mlflow_model_points(struct state *st, struct change *c, struct err *err);

#endif
