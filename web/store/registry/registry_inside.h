/* registry_inside.h: what the kinds of changes of this room share; on the writer's thread. Private to the room. */
#ifndef DPT_STORE_REGISTRY_INSIDE_H
#define DPT_STORE_REGISTRY_INSIDE_H

#include "web/store/registry/registry.h"
#include "web/store/write/change.h"

/* copy of every kind: struct registry_op is in c->op.more then. */
int registry_copy(struct change *c, const struct ingest_op *op, struct err *err);

/* The row of the registered model that c names; the second also wants the version to be there. 1, 0 when it was
 * refused, or negative. */
int registry_need(struct state *st, struct change *c, int64_t *ret, struct err *err);
int registry_need_version(struct state *st, struct change *c, int64_t *ret, struct err *err);

#endif
