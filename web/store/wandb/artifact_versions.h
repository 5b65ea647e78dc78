/* SPDX-License-Identifier: Apache-2.0 */
/* artifact_versions.h: versions of W&B's artifacts: collections in an experiment, numbered versions by content,
 * aliases, the runs that made and use them. Their files are artifacts of the run that made them. Any thread. */
#ifndef DPT_STORE_ARTIFACT_VERSIONS_H
#define DPT_STORE_ARTIFACT_VERSIONS_H

#include "web/store/read/query.h"
#include "web/store/write/ingest.h"

#define WANDB_ARTIFACTS "wandb-artifacts" /* folder of a run's artifacts with the files of W&B's */

#define CHANGE(name) extern const struct change_ops name;
#include "web/store/wandb/changes.def"
#undef CHANGE

enum artifact_version_state { ARTIFACT_PENDING, ARTIFACT_COMMITTED, ARTIFACT_DELETED };

struct artifact_version {
	int64_t id, experiment, version, created_ms;
	const char *collection, *type, *digest, *client;
	const char *run;  /* id of the run that made it; "": none yet */
	const char *said; /* JSON: what its client said of it */
	enum artifact_version_state state;
};

struct artifact_versions {
	struct artifact_version *items;
	size_t count;
};

enum artifact_version_what {
	ARTIFACT_CREATE, /* experiment, collection, type, digest, client, run, said; pairs: aliases, set if the content
			  * is there already. The next number, unless a committed version has the digest, or one has the
			  * client's id. shared: the pending version with the client's id, or a new one */
	ARTIFACT_COMMIT, /* id, digest (NULL: as created), files; pairs: aliases */
	ARTIFACT_RUN,	 /* id, run (if it has none) */
	ARTIFACT_ALIAS,	 /* id; pairs: an alias and "" (set) or "-" (removed) */
	ARTIFACT_UPDATE, /* id, said; pairs: as ARTIFACT_ALIAS */
	ARTIFACT_USE,	 /* id, run */
	ARTIFACT_REMOVE, /* id: the version is deleted, its number is not used again; ERR_EXISTS: it has aliases, and
			  * aliased is not set */
};

/* A file of a version. */
struct artifact_version_file {
	const char *name, *md5; /* md5: of its bytes, in base64; of a reference what its client says */
	int64_t bytes;		/* -1: unknown */
	int64_t born;		/* the version that it was uploaded for; 0: a reference, which is not here */
};

struct artifact_version_files {
	struct artifact_version_file *items; /* by name */
	size_t count;
};

struct artifact_version_op {
	enum artifact_version_what what;
	bool shared, aliased;
	int64_t id, experiment;
	const char *collection, *type, *digest, *client, *run, *said;
	const struct ingest_kv *pairs;
	size_t pair_count;
	struct artifact_version_files files;
};

struct ingest_op artifact_version_op(const struct artifact_version_op *op); /* for ingest_submit; borrows it */

/* What to read. */
enum artifact_version_by {
	ARTIFACT_BY_ID,		/* id */
	ARTIFACT_BY_CLIENT,	/* text */
	ARTIFACT_BY_VERSION,	/* experiment, text = collection, id = version */
	ARTIFACT_BY_ALIAS,	/* experiment, text = collection, alias */
	ARTIFACT_OF_COLLECTION, /* experiment, text: committed ones, the newest first */
	ARTIFACT_OF_EXPERIMENT, /* experiment: committed ones, by collection, the newest first */
	ARTIFACT_MADE_BY,	/* text = run */
	ARTIFACT_USED_BY,	/* text = run */
};

struct artifact_version_sel {
	enum artifact_version_by by;
	int64_t id, experiment;
	const char *text, *alias;
};

int artifact_versions(struct store *s, const struct artifact_version_sel *sel, struct arena *a,
		      struct artifact_versions *ret, struct err *err);

/* Pairs of a version: its collection's aliases with the numbers of their versions; runs that use it. */
enum artifact_version_pairs { ARTIFACT_ALIASES, ARTIFACT_USERS };
struct artifact_version_part {
	const struct artifact_version *of;
	enum artifact_version_pairs what;
};
int artifact_version_pairs(struct store *s, const struct artifact_version_part *part, struct arena *a,
			   struct query_kvs *ret, struct err *err);

/* The files of a version that the caller may see. */
int artifact_version_files(struct store *s, int64_t id, struct arena *a, struct artifact_version_files *ret,
			   struct err *err);

#endif
