/* SPDX-License-Identifier: Apache-2.0 */
/* registered.h: the model registry: one registered model or version, searches in pages, changes. Skips deleted
 * versions. Text lives in the caller's arena. */
#ifndef DPT_STORE_REGISTERED_H
#define DPT_STORE_REGISTERED_H

#include "web/store/read/query.h"
#include "web/store/write/ingest.h"

struct registered_version {
	const char *model; /* the registered model's name */
	int64_t version;
	const char *description, *user, *run, *run_link, *status_text; /* NULL: not given */
	const char *created_by, *changed_by;			       /* for who replies: audit.h; NULL: unknown */
	const char *stage, *source, *status;
	const char *location; /* location of its files: source, or what it resolved to */
	int64_t created_ms, updated_ms;
	struct query_kv *tags; /* by key */
	size_t tag_count;
	const char **aliases; /* by name */
	size_t alias_count;
};

struct registered_alias {
	const char *alias;
	int64_t version;
};

struct registered_model {
	const char *name, *description;
	int64_t created_ms, updated_ms;
	struct query_kv *tags; /* by key */
	size_t tag_count;
	struct registered_alias *aliases; /* by name */
	size_t alias_count;
	struct registered_version *latest; /* per stage, in the order in which stages were first used */
	size_t latest_count;
};

/* ERR_NOENT without a text: none. */
int registered_get(struct store *s, const char *name, struct arena *a, struct registered_model *ret, struct err *err);

struct registered_version_name {
	const char *model;
	int64_t version;
};
int registered_version_get(struct store *s, const struct registered_version_name *of, struct arena *a,
			   struct registered_version *ret, struct err *err);

/* A page of a search. Prompts (models with the tag mlflow.prompt.is_prompt) are found only by a filter that names
 * this tag. */
struct registered_opts {
	const char *filter;
	const char *const *order; /* none: models by name; versions by last change, newest first */
	size_t order_count;
	size_t limit;
	const char *page_token; /* NULL or "": the first page */
};

struct registered_models {
	struct registered_model *items;
	size_t count;
	const char *next_page_token; /* NULL: the last page */
};

struct registered_versions {
	struct registered_version *items; /* without aliases, as in MLflow */
	size_t count;
	const char *next_page_token; /* NULL: the last page */
};

/* ERR_USAGE in MLflow's words. */
int registered_search(struct store *s, const struct registered_opts *o, struct arena *a, struct registered_models *ret,
		      struct err *err);
int registered_versions_search(struct store *s, const struct registered_opts *o, struct arena *a,
			       struct registered_versions *ret, struct err *err);

/* --- registry.c ----------------------------------------------------------------------------------------------- */

/* Changes of the model registry, by MLflow's rules and refused in MLflow's words. They go through ingest_submit.
 * Knows no logged models: the caller supplies the location of a version's files. */
#define CHANGE(name) extern const struct change_ops name;
#include "web/store/registry/changes.def"
#undef CHANGE

struct registry_op {
	const struct change_ops *kind;
	const char *name; /* name of the registered model */
	const char *text; /* see changes.def */
	int64_t version;
	bool archive;
	const char *source, *location, *run, *run_link; /* for a new version */
	const struct ingest_kv *tags;
	size_t tag_count;
};

/* op for ingest_submit; borrows it. */
struct ingest_op registry_op(const struct registry_op *op);

#endif
