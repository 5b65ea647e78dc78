/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_names.c: runs, projects and files as W&B's client names them: looks them up, and makes their JSON. */
#include "web/api/wandb/wandb.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tracker/base/clock.h"
#include "tracker/base/sha256.h"
#include "tracker/base/text.h"
#include "web/store/mlflow/experiments.h"

/* --- identity --------------------------------------------------------------------------------------------------- */

void wandb_id(char ret[33], const char *fmt, ...)
{
	char text[4096], hex[65];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	sha256_hex(text, strlen(text), hex);
	snprintf(ret, 33, "%.32s", hex);
}

/* Two entities may have projects of one name: those of the entity of this server keep theirs. */
const char *wandb_experiment(struct call *c, const char *entity, const char *project)
{
	return strcmp(entity, WANDB_ENTITY) ? arena_printf(c->arena, "%s/%s", entity, project) : project;
}

const char *wandb_tag(const struct query_run *run, const char *key)
{
	return api_pair(run->tags, run->tag_count, key);
}

const char *wandb_text(const struct wandb_run *r, const char *name)
{
	return r->found ? api_pair(r->texts.items, r->texts.count, name) : NULL;
}

json_t *wandb_parse(const char *text)
{
	return text && !json_too_much(text, strlen(text)) ? json_lenient(text, strlen(text), JSON_DECODE_ANY, NULL)
							  : NULL;
}

/* The run's names, from its tags and its experiment. */
static void name_run(struct call *c, const struct query_run *run, struct wandb_run *ret)
{
	const char *entity = wandb_tag(run, WANDB_TAG_ENTITY), *name = wandb_tag(run, WANDB_TAG_ID);
	const char *prefix = entity ? arena_printf(c->arena, "%s/", entity) : "";
	size_t n = strlen(prefix);

	ret->entity = entity ? entity : WANDB_ENTITY;
	ret->project = run->experiment + (strncmp(run->experiment, prefix, n) ? 0 : n);
	ret->name = name ? name : run->id;
}

const char *wandb_default(const char *text, const char *fallback)
{
	return text && *text ? text : fallback;
}

bool wandb_find(struct call *c, const char *entity, const char *project, const char *name, struct wandb_run *ret)
{
	struct wandb_run r = { .entity = wandb_default(entity, WANDB_ENTITY),
			       .project = wandb_default(project, WANDB_PROJECT),
			       .name = name };
	struct err err = ERR_INIT;
	int rc;

	wandb_id(r.id, "wandb %s/%s/%s", r.entity, r.project, r.name);
	rc = query_run(c->api->store, r.id, c->arena, &r.run, &err);
	if (rc == ERR_NOENT && call_is_run_id(name)) {
		rc = query_run(c->api->store, name, c->arena, &r.run, &err);
		if (!rc) {
			snprintf(r.id, sizeof(r.id), "%s", name);
			name_run(c, &r.run, &r);
		}
	}
	if (!rc)
		rc = query_run_texts(c->api->store, r.id, c->arena, &r.texts, &err);
	r.found = !rc;
	*ret = r;
	if (rc && rc != ERR_NOENT)
		call_fail_err(c, "run", &err);
	return !rc || rc == ERR_NOENT;
}

/* --- JSON ------------------------------------------------------------------------------------------------------- */

json_t *wandb_time_json(int64_t ms)
{
	time_t when = (time_t)(ms / 1000);
	char text[32];
	struct tm tm;

	if (ms == INT64_MIN || !gmtime_r(&when, &tm) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm))
		return json_null();
	return json_string(text);
}

static const char *state_name(const struct query_run *run)
{
	if (!strcmp(run->status, "killed"))
		return run->status_inferred ? "crashed" : "killed";
	return strcmp(run->status, "scheduled") ? run->status : "pending";
}

json_t *wandb_project_json(struct call *c, const char *entity, const char *project)
{
	struct experiment e;
	struct err err = ERR_INIT;
	int rc = experiment_find(c->api->store, wandb_experiment(c, entity, project), c->arena, &e, &err);

	if (rc && rc != ERR_NOENT)
		call_fail_err(c, "project", &err);
	if (rc || e.deleted)
		return NULL;
	return json_pack("{s:s, s:o, s:o, s:s, s:s, s:o, s:b, s:b, s:o, s:{s:s, s:s, s:s, s:b, s:n}}", "__typename",
			 "Project", "id", json_sprintf("%lld", (long long)e.id), "internalId",
			 json_sprintf("%lld", (long long)e.id), "name", project, "entityName", entity, "createdAt",
			 wandb_time_json(e.created_ms), "readOnly", 0, "isBenchmark", 0, "tags", json_array(), "entity",
			 "__typename", "Entity", "id", entity, "name", entity, "isTeam", 1, "organization");
}

/* W&B's tags are tags without a value. */
static json_t *tags_json(const struct query_run *run)
{
	json_t *tags = json_array();

	for (size_t i = 0; i < run->tag_count; i++)
		if (!*run->tags[i].value)
			json_array_append_new(tags, json_string(run->tags[i].key));
	return tags;
}

json_t *wandb_run_json(struct call *c, const struct query_run *run)
{
	struct wandb_run r;
	json_t *o;

	name_run(c, run, &r);
	o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s?, s:s?, s:s?, s:s?, s:o}", "__typename", "Run", "id", run->id,
		      "name", r.name, "displayName", run->name, "state", state_name(run), "group",
		      wandb_tag(run, WANDB_TAG_GROUP), "groupName", wandb_tag(run, WANDB_TAG_GROUP), "jobType",
		      wandb_tag(run, WANDB_TAG_JOB), "sweepName", wandb_tag(run, WANDB_TAG_SWEEP), "tags",
		      tags_json(run));
	json_object_set_new(o, "createdAt", wandb_time_json(run->start_ms));
	json_object_set_new(o, "heartbeatAt",
			    wandb_time_json(run->end_ms != INT64_MIN ? run->end_ms : clock_wall_ms()));
	json_object_set_new(o, "updatedAt", json_copy(json_object_get(o, "heartbeatAt")));
	json_object_set_new(o, "notes", *run->notes ? json_string(run->notes) : json_null());
	json_object_set_new(o, "description", json_copy(json_object_get(o, "notes")));
	json_object_set_new(o, "projectId", json_integer(atoll(run->experiment_id)));
	json_object_set_new(o, "readOnly", json_false());
	json_object_set_new(o, "sweep", json_null());
	json_object_set_new(o, "commit", json_null());
	json_object_set_new(o, "user",
			    json_pack("{s:s, s:s, s:s, s:s}", "__typename", "User", "id", WANDB_ENTITY, "name",
				      WANDB_ENTITY, "username", WANDB_ENTITY));
	json_object_set_new(o, "project", wandb_project_json(c, r.entity, r.project));
	return o;
}

/* A param's text as the JSON value that it most likely was. */
json_t *wandb_value_of_text(const char *text)
{
	json_t *value = wandb_parse(text);

	if (json_is_number(value) || json_is_boolean(value) || json_is_array(value))
		return value;
	json_decref(value);
	return json_string(text);
}

const char *wandb_place(struct call *c, const struct query_run *run, const char *path)
{
	return arena_printf(c->arena, "%s/%s/artifacts%s%s", run->experiment_id, run->id, *path ? "/" : "", path);
}

const char *wandb_escape(struct call *c, const char *text, const char *stays)
{
	struct buf b;

	buf_init(&b, CALL_BUFFERED_MAX);
	text_add_escaped(&b, text, stays);
	text = arena_strdup(c->arena, b.len ? b.data : "");
	buf_done(&b);
	return text;
}
