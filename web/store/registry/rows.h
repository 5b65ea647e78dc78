/* rows.h: converts rows of the registry's tables to structs, and reads what belongs to them. Private to the room. */
#ifndef DPT_STORE_REGISTRY_ROWS_H
#define DPT_STORE_REGISTRY_ROWS_H

#include "web/store/db/db.h"
#include "web/store/registry/registered.h"

/* From the current row of a query with the columns of registered_rows or version_rows. */
struct registered_model rows_model(struct arena *a, struct db_rows *q);
struct registered_version rows_version(struct arena *a, struct db_rows *q);

/* id: row of the registered model. */
int rows_model_tags(struct db *d, int64_t id, struct arena *a, struct registered_model *m, struct err *err);
int rows_version_tags(struct db *d, int64_t id, struct arena *a, struct registered_version *v, struct err *err);
int rows_model_aliases(struct db *d, int64_t id, struct arena *a, struct registered_model *m, struct err *err);
int rows_model_latest(struct db *d, int64_t id, struct arena *a, struct registered_model *m, struct err *err);

#endif
