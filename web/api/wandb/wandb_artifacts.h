/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_artifacts.h: what versions of artifacts and their files share. Private to web/api/wandb. */
#ifndef DPT_API_WANDB_ARTIFACTS_H
#define DPT_API_WANDB_ARTIFACTS_H

#include "web/api/wandb/wandb.h"
#include "web/store/wandb/artifact_versions.h"

/* ---- wandb_artifacts.c ---- */

/* The client turns ids into hex digits and back, so they are base64, as W&B's. */
const char *wandb_artifact_id(struct call *c, int64_t id);
int64_t wandb_read_artifact_id(const char *id); /* the number; -1: it has none */
const char *wandb_base64(struct call *c, const void *bytes, size_t n);

/* The first version that is selected, also a deleted one; NULL: none, or the call has failed. */
const struct artifact_version *wandb_find_version(struct call *c, const struct artifact_version_sel *sel);
const struct artifact_version *wandb_version_of_id(struct call *c, const char *id); /* NULL: none, or deleted */
const struct artifact_version *wandb_version_of(struct call *c, json_t *object);    /* an object Artifact */

/* Submits a change of a version; the root field then gives what `then` makes of it. */
enum call_next wandb_submit_version(struct call *c, const struct artifact_version_op *op,
				    enum call_next (*then)(struct call *c, const struct ingest_result *res));
enum call_next wandb_give_version(struct call *c, const struct ingest_result *res);

/* A list of texts, or of objects with the text as a member, as pairs. */
size_t wandb_read_names(struct call *c, json_t *list, const char *member, const char *mark, struct ingest_kv **ret);

/* The run of the arguments entityName, projectName and runName; the id is "" if none is given. Returns false after
 * failing the call. */
bool wandb_run_of_args(struct call *c, const struct graphql_field *f, struct wandb_run *ret);

#endif
