/* registry.h: changes of the registry by MLflow's rules, refused in MLflow's words. They go through the one door,
 * ingest_submit. Knows no logged models: where a version's files lie is the caller's to say. */
#ifndef DPT_STORE_REGISTRY_H
#define DPT_STORE_REGISTRY_H

#include "web/store/write/ingest.h"

#define CHANGE(name) extern const struct change_ops name;
#include "web/store/registry/changes.def"
#undef CHANGE

struct registry_op {
	const struct change_ops *kind;
	const char *name; /* of the registered model */
	const char *text; /* what changes.def says of the kind */
	int64_t version;
	bool archive;
	const char *source, *location, *run, *run_link; /* of a new version */
	const struct ingest_kv *tags;
	size_t tag_count;
};

/* op as ingest_submit takes it; borrows it. */
struct ingest_op registry_op(const struct registry_op *op);

#endif
