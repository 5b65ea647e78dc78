/* registry_inside.h: shared by the kinds of changes of this room; writer's thread. Private to the room. */
#ifndef DPT_STORE_REGISTRY_INSIDE_H
#define DPT_STORE_REGISTRY_INSIDE_H

#include "web/store/registry/registry.h"
#include "web/store/write/change.h"

/* copy of every kind: puts struct registry_op into c->op.more. */
int registry_copy(struct change *c, const struct ingest_op *op, struct err *err);

/* Finds the row of the registered model that c names; the second also requires the version. 1: found, 0 refused, or
 * negative. */
int registry_need(struct state *st, struct change *c, int64_t *ret, struct err *err);
int registry_need_version(struct state *st, struct change *c, int64_t *ret, struct err *err);

#endif
