/* registry.h: changes of the model registry, by MLflow's rules and refused in MLflow's words. They go through
 * ingest_submit. Knows no logged models: the caller supplies the location of a version's files. */
#ifndef DPT_STORE_REGISTRY_H
#define DPT_STORE_REGISTRY_H

#include "web/store/write/ingest.h"

#define CHANGE(name) extern const struct change_ops name;
#include "web/store/registry/changes.def"
#undef CHANGE

struct registry_op {
	const struct change_ops *kind;
	const char *name; /* of the registered model */
	const char *text; /* see changes.def */
	int64_t version;
	bool archive;
	const char *source, *location, *run, *run_link; /* of a new version */
	const struct ingest_kv *tags;
	size_t tag_count;
};

/* op for ingest_submit; borrows it. */
struct ingest_op registry_op(const struct registry_op *op);

#endif
