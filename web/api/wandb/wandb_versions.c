/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_versions.c: GET /api/v1/artifact-versions: versions of W&B's artifacts with their lineage, the run that made
 * each and those that use it. */
#include "web/api/wandb/wandb.h"

#include <inttypes.h>
#include <stdlib.h>

#include "web/store/mlflow/experiments.h"
#include "web/store/wandb/artifact_versions.h"

#define VERSIONS_MAX 500
#define USERS_MAX 100 /* of one version */

/* Writes a run that the caller may see; another one and none is null. */
static void write_run_of(struct call *c, struct js *j, const char *id)
{
	struct query_run run;

	if (!*id || query_run(c->api->store, id, c->arena, &run, NULL)) {
		js_null(j);
		return;
	}
	js_open(j, '{');
	js_key_str(j, "id", run.id);
	js_key_str(j, "name", run.name);
	js_key_str(j, "experiment", run.experiment);
	js_close(j, '}');
}

static void read_version_pairs(struct call *c, const struct artifact_version *v, enum artifact_version_pairs what,
			       struct query_kvs *ret)
{
	*ret = (struct query_kvs){ 0 };
	artifact_version_pairs(c->api->store, &(struct artifact_version_part){ v, what }, c->arena, ret, NULL);
}

/* Writes a version with its aliases and the runs that the caller may see. */
static void write_version(struct call *c, struct js *j, const struct artifact_version *v)
{
	struct query_kvs pairs;

	js_open(j, '{');
	js_key_str(j, "collection", v->collection);
	js_key_int(j, "version", v->version);
	js_key_str(j, "type", v->type);
	js_key_str(j, "digest", v->digest);
	js_key_int(j, "created_time", v->created_ms);
	js_key_str(j, "folder", arena_printf(c->arena, WANDB_ARTIFACTS "/%s/v%" PRId64, v->collection, v->version));
	read_version_pairs(c, v, ARTIFACT_ALIASES, &pairs);
	js_key_open(j, "aliases", '[');
	for (size_t i = 0; i < pairs.count; i++)
		if (strtoll(pairs.items[i].value, NULL, 10) == v->version)
			js_str(j, pairs.items[i].key);
	js_close(j, ']');
	js_key(j, "made_by");
	write_run_of(c, j, v->run);
	read_version_pairs(c, v, ARTIFACT_USERS, &pairs);
	js_key_open(j, "used_by", '[');
	for (size_t i = 0; i < pairs.count && i < USERS_MAX; i++)
		write_run_of(c, j, pairs.items[i].key);
	js_close(j, ']');
	js_close(j, '}');
}

/* Reads one kind of versions. Returns false after failing the call. */
static bool read_versions(struct call *c, const struct artifact_version_sel *sel, struct artifact_versions *ret)
{
	struct err err = ERR_INIT;

	if (!artifact_versions(c->api->store, sel, c->arena, ret, &err))
		return true;
	call_fail_err(c, NULL, &err);
	return false;
}

static void write_versions(struct call *c, struct js *j, const struct artifact_versions *l, size_t *left)
{
	for (size_t i = 0; i < l->count && *left; i++)
		if (l->items[i].state == ARTIFACT_COMMITTED) {
			write_version(c, j, &l->items[i]);
			--*left;
		}
}

/* Those of an experiment, or those that a run made and then those that it uses. */
enum call_next on_artifact_versions_get(struct call *c)
{
	const char *name = call_arg(c, "experiment"), *run = call_arg(c, "run");
	struct artifact_versions first, then = { 0 };
	struct js j = { .out = &c->out };
	size_t left = VERSIONS_MAX;
	struct query_run there;
	struct experiment e;
	struct err err = ERR_INIT;

	if (!call_args_done(c))
		return CALL_DONE;
	if (!name == !run)
		return call_fail(c, CALL_bad_value, "run", "expected either run or experiment");
	if (run && query_run(c->api->store, run, c->arena, &there, &err))
		return call_fail_err(c, "run", &err);
	if (name && experiment_find(c->api->store, name, c->arena, &e, &err))
		return *err.text ? call_fail_err(c, "experiment", &err)
				 : call_fail(c, CALL_not_found, "experiment", "there is no experiment '%.100s'", name);
	if (!read_versions(c,
			   run ? &(struct artifact_version_sel){ .by = ARTIFACT_MADE_BY, .text = run }
			       : &(struct artifact_version_sel){ .by = ARTIFACT_OF_EXPERIMENT, .experiment = e.id },
			   &first) ||
	    (run && !read_versions(c, &(struct artifact_version_sel){ .by = ARTIFACT_USED_BY, .text = run }, &then)))
		return CALL_DONE;
	js_open(&j, '{');
	js_key_open(&j, "versions", '[');
	write_versions(c, &j, &first, &left);
	write_versions(c, &j, &then, &left);
	js_close(&j, ']');
	js_key_bool(&j, "more", !left && first.count + then.count > VERSIONS_MAX);
	return js_reply(c, &j);
}
