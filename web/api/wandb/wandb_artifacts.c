/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_artifacts.c: W&B's artifacts: versions of collections, their aliases, tags and lineage. */
#include "web/api/wandb/wandb_artifacts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/text.h"
#include "web/store/files/artifacts.h"
#include "web/store/mlflow/experiments.h"

const char *wandb_base64(struct call *c, const void *bytes, size_t n)
{
	const char *text;
	struct buf b;

	buf_init(&b, 256);
	text_add_base64(&b, bytes, n, false);
	text = arena_strdup(c->arena, b.data);
	buf_done(&b);
	return text;
}

const char *wandb_artifact_id(struct call *c, int64_t id)
{
	const char *text = arena_printf(c->arena, "Artifact:%" PRId64, id);

	return wandb_base64(c, text, strlen(text));
}

int64_t wandb_read_artifact_id(const char *id)
{
	char text[64] = "";

	if (id)
		text_unbase64(text, sizeof(text) - 1, id);
	return strncmp(text, "Artifact:", 9) ? -1 : strtoll(text + 9, NULL, 10);
}

/* --- reading ---------------------------------------------------------------------------------------------------- */

const struct artifact_version *wandb_find_version(struct call *c, const struct artifact_version_sel *sel)
{
	struct artifact_versions list;
	struct err err = ERR_INIT;

	if (artifact_versions(c->api->store, sel, c->arena, &list, &err))
		return call_fail_err(c, NULL, &err), NULL;
	return list.count ? &list.items[0] : NULL;
}

/* As wandb_find_version, but no deleted one. */
static const struct artifact_version *find_one(struct call *c, const struct artifact_version_sel *sel)
{
	const struct artifact_version *v = wandb_find_version(c, sel);

	return v && v->state != ARTIFACT_DELETED ? v : NULL;
}

const struct artifact_version *wandb_version_of_id(struct call *c, const char *id)
{
	return find_one(c, &(struct artifact_version_sel){ .by = ARTIFACT_BY_ID, .id = wandb_read_artifact_id(id) });
}

/* A version by its number ("v3"), by an alias, or by its digest. */
static const struct artifact_version *find_in(struct call *c, int64_t experiment, const char *collection,
					      const char *alias)
{
	struct artifact_version_sel sel = {
		.by = ARTIFACT_BY_ALIAS, .experiment = experiment, .text = collection, .alias = alias
	};
	char *end;

	if (*alias == 'v' && alias[1]) {
		sel.id = strtoll(alias + 1, &end, 10);
		sel.by = *end ? ARTIFACT_BY_ALIAS : ARTIFACT_BY_VERSION;
	}
	return find_one(c, &sel);
}

/* "COLLECTION:ALIAS"; without an alias the latest. */
static const struct artifact_version *find_named(struct call *c, int64_t experiment, const char *name)
{
	const char *colon = strrchr(name, ':');

	return find_in(c, experiment,
		       arena_printf(c->arena, "%.*s", (int)(colon ? colon - name : (int)strlen(name)), name),
		       colon ? colon + 1 : "latest");
}

static int64_t experiment_of(json_t *project)
{
	const char *id = json_string_value(json_object_get(project, "id"));

	return id ? strtoll(id, NULL, 10) : -1;
}

/* The project of an experiment; NULL: none. */
static json_t *project_of(struct call *c, int64_t id)
{
	struct experiment e;
	struct err err = ERR_INIT;
	const char *slash;

	if (experiment_get(c->api->store, id, c->arena, &e, &err))
		return NULL;
	slash = strchr(e.name, '/');
	return slash ? wandb_project_json(c, arena_printf(c->arena, "%.*s", (int)(slash - e.name), e.name), slash + 1)
		     : wandb_project_json(c, WANDB_ENTITY, e.name);
}

static json_t *collection_json(struct call *c, int64_t experiment, const char *name, const char *type)
{
	return json_pack("{s:s, s:s, s:s, s:n, s:s, s:s, s:s, s:{s:[]}, s:{s:s}, s:o}", "__typename",
			 "ArtifactSequence", "id", arena_printf(c->arena, "%" PRId64 "/%s", experiment, name), "name",
			 name, "description", "createdAt", "1970-01-01T00:00:00Z", "updatedAt", "1970-01-01T00:00:00Z",
			 "state", "READY", "tags", "edges", "defaultArtifactType", "name", type, "project",
			 project_of(c, experiment));
}

static json_t *version_json(struct call *c, const struct artifact_version *v)
{
	static const char *const states[] = { "PENDING", "COMMITTED", "DELETED" };
	json_t *said = wandb_parse(v->said), *o, *value, *tags = json_array(), *tag;
	const char *key;
	size_t i;

	json_array_foreach(json_object_get(said, "tags"), i, tag)
		json_array_append_new(tags, json_pack("{s:s, s:s, s:O}", "__typename", "Tag", "id", "", "name", tag));
	o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:{s:s}, s:o, s:i, s:b, s:n, s:o}", "__typename", "Artifact",
		      "id", wandb_artifact_id(c, v->id), "state", states[v->state], "digest", v->digest,
		      "digestAlgorithm", "MANIFEST_MD5", "versionIndex", (json_int_t)v->version, "artifactType", "name",
		      v->type, "tags", tags, "ttlDurationSeconds", 0, "ttlIsInherited", 0, "commitHash", "createdAt",
		      wandb_time_json(v->created_ms));
	json_object_set(o, "updatedAt", json_object_get(o, "createdAt"));
	json_object_foreach(said, key, value)
		if (strcmp(key, "tags") && strcmp(key, "aliases"))
			json_object_set(o, key, value);
	json_decref(said);
	return o;
}

static void reverse_versions(struct artifact_versions *l)
{
	for (size_t i = 0; i < l->count / 2; i++) {
		const struct artifact_version kept = l->items[i];

		l->items[i] = l->items[l->count - 1 - i];
		l->items[l->count - 1 - i] = kept;
	}
}

/* A page of the versions that are selected, the newest first unless the client asks for the oldest. */
static json_t *give_versions(struct call *c, const struct artifact_version_sel *sel, const struct graphql_field *f)
{
	const char *after = graphql_text(f, "after"), *order = graphql_text(f, "order");
	int64_t first = graphql_int(f, "first", 50, 1, 1000), from = after ? strtoll(after, NULL, 10) : 0;
	struct artifact_versions list;
	struct err err = ERR_INIT;
	json_t *nodes = json_array(), *all, *edge;
	size_t i;

	if (artifact_versions(c->api->store, sel, c->arena, &list, &err)) {
		json_decref(nodes);
		return call_fail_err(c, NULL, &err), NULL;
	}
	if (order && !strcmp(order + (*order == '+'), "version_index"))
		reverse_versions(&list);
	for (int64_t k = from; k < (int64_t)list.count && k < from + first; k++)
		json_array_append_new(nodes, version_json(c, &list.items[k]));
	all = graphql_connection(nodes, arena_printf(c->arena, "%" PRId64, from + first),
				 from + first < (int64_t)list.count, (int64_t)list.count);
	json_array_foreach(json_object_get(all, "edges"), i, edge)
		json_object_set_new(edge, "version", json_sprintf("v%" PRId64, list.items[from + (int64_t)i].version));
	return all;
}

/* Pairs of a version; none if there is no version or they cannot be read. */
static struct query_kvs read_pairs(struct call *c, const struct artifact_version *v, enum artifact_version_pairs what)
{
	struct query_kvs pairs = { 0 };

	if (v)
		artifact_version_pairs(c->api->store, &(struct artifact_version_part){ v, what }, c->arena, &pairs,
				       NULL);
	return pairs;
}

/* --- members ---------------------------------------------------------------------------------------------------- */

const struct artifact_version *wandb_version_of(struct call *c, json_t *object)
{
	return wandb_version_of_id(c, json_string_value(json_object_get(object, "id")));
}

json_t *wandb_artifact_aliases(struct call *c, json_t *object, const struct graphql_field *f)
{
	const struct artifact_version *v = wandb_version_of(c, object);
	json_t *all = json_array(), *collection;
	const struct query_kvs pairs = read_pairs(c, v, ARTIFACT_ALIASES);

	(void)f;
	if (!v)
		return all;
	collection = collection_json(c, v->experiment, v->collection, v->type);
	for (size_t i = 0; i < pairs.count; i++)
		if (strtoll(pairs.items[i].value, NULL, 10) == v->version)
			json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:O}", "__typename", "ArtifactAlias",
							     "id", pairs.items[i].key, "alias", pairs.items[i].key,
							     "artifactCollection", collection));
	json_decref(collection);
	return all;
}

json_t *wandb_artifact_sequence(struct call *c, json_t *object, const struct graphql_field *f)
{
	const struct artifact_version *v = wandb_version_of(c, object), *latest;
	json_t *o;

	if (!v)
		return NULL;
	o = collection_json(c, v->experiment, v->collection, v->type);
	latest = graphql_asks(f, "latestArtifact")
			 ? find_one(c, &(struct artifact_version_sel){ .by = ARTIFACT_OF_COLLECTION,
								       .experiment = v->experiment,
								       .text = v->collection })
			 : NULL;
	json_object_set_new(o, "latestArtifact", latest ? version_json(c, latest) : json_null());
	return o;
}

json_t *wandb_artifact_runs(struct call *c, json_t *object, const struct graphql_field *f)
{
	const struct artifact_version *v = wandb_version_of(c, object);
	json_t *nodes = json_array(), *run;
	struct query_kvs users;
	struct wandb_run r;

	if (v && !strcmp(f->name, "createdBy")) {
		json_decref(nodes);
		return *v->run && wandb_find(c, NULL, NULL, v->run, &r) && r.found ? wandb_run_json(c, &r.run) : NULL;
	}
	users = read_pairs(c, v, ARTIFACT_USERS);
	for (size_t i = 0; i < users.count && i < 1000; i++)
		if (wandb_find(c, NULL, NULL, users.items[i].key, &r) && r.found) {
			run = wandb_run_json(c, &r.run);
			json_array_append_new(nodes, run);
		}
	return graphql_connection(nodes, NULL, false, (int64_t)users.count);
}

static json_t *membership_json(struct call *c, const struct artifact_version *v)
{
	json_t *artifact = version_json(c, v), *o;

	o = json_pack("{s:s, s:s, s:I, s:O, s:o, s:o}", "__typename", "ArtifactCollectionMembership", "id",
		      wandb_artifact_id(c, v->id), "versionIndex", (json_int_t)v->version, "createdAt",
		      json_object_get(artifact, "createdAt"), "artifactCollection",
		      collection_json(c, v->experiment, v->collection, v->type), "artifact", artifact);
	json_object_set_new(o, "aliases", wandb_artifact_aliases(c, artifact, NULL));
	return o;
}

json_t *wandb_project_artifact(struct call *c, json_t *object, const struct graphql_field *f)
{
	const char *name = graphql_text(f, "name");
	const struct artifact_version *v = name ? find_named(c, experiment_of(object), name) : NULL;

	if (!v || v->state != ARTIFACT_COMMITTED)
		return NULL;
	return strcmp(f->name, "artifact") ? membership_json(c, v) : version_json(c, v);
}

/* Of a project, or of a type in it. */
json_t *wandb_project_collection(struct call *c, json_t *object, const struct graphql_field *f)
{
	const char *name = graphql_text(f, "name"),
		   *type = json_string_value(json_object_get(object, "artifactTypeName"));
	const struct artifact_version *v =
		name ? find_one(c, &(struct artifact_version_sel){ .by = ARTIFACT_OF_COLLECTION,
								   .experiment = experiment_of(object),
								   .text = name })
		     : NULL;

	return v && (!type || !strcmp(type, v->type)) ? collection_json(c, v->experiment, v->collection, v->type)
						      : NULL;
}

json_t *wandb_collection_member(struct call *c, json_t *object, const struct graphql_field *f)
{
	const char *id = json_string_value(json_object_get(object, "id")), *slash = id ? strchr(id, '/') : NULL;
	const char *alias = graphql_text(f, "aliasName");
	struct artifact_version_sel sel = { .by = ARTIFACT_OF_COLLECTION,
					    .experiment = id ? strtoll(id, NULL, 10) : -1,
					    .text = slash ? slash + 1 : "" };
	struct artifact_version of = { .experiment = sel.experiment, .collection = sel.text };
	const struct artifact_version *v;
	struct query_kvs pairs;
	json_t *nodes;

	if (!strcmp(f->name, "artifacts"))
		return give_versions(c, &sel, f);
	if (!strcmp(f->name, "artifactMembership")) {
		v = find_in(c, sel.experiment, sel.text, alias ? alias : "latest");
		return v ? membership_json(c, v) : NULL;
	}
	nodes = json_array();
	pairs = read_pairs(c, &of, ARTIFACT_ALIASES);
	for (size_t i = 0; i < pairs.count; i++)
		json_array_append_new(nodes, json_pack("{s:s, s:s, s:s}", "__typename", "ArtifactAlias", "id",
						       pairs.items[i].key, "alias", pairs.items[i].key));
	return graphql_connection(nodes, NULL, false, (int64_t)pairs.count);
}

static json_t *type_json(json_t *project, const char *name)
{
	return json_pack("{s:s, s:O, s:s, s:s, s:n, s:s}", "__typename", "ArtifactType", "id",
			 json_object_get(project, "id"), "name", name, "artifactTypeName", name, "description",
			 "createdAt", "1970-01-01T00:00:00Z");
}

/* The types of a project, or the collections of a type: what differs in the list of all versions. */
static json_t *list_distinct(struct call *c, json_t *object, const struct graphql_field *f, const char *type)
{
	struct artifact_version_sel sel = { .by = ARTIFACT_OF_EXPERIMENT, .experiment = experiment_of(object) };
	const char *after = graphql_text(f, "after");
	int64_t first = graphql_int(f, "first", 1000, 1, 1000), from = after ? strtoll(after, NULL, 10) : 0, n = 0;
	json_t *nodes = json_array(), *seen = json_object();
	struct artifact_versions list = { 0 };

	artifact_versions(c->api->store, &sel, c->arena, &list, NULL);
	for (size_t i = 0; i < list.count; i++) {
		const struct artifact_version *v = &list.items[i];
		const char *key = type ? v->collection : v->type;

		if ((type && *type && strcmp(type, v->type)) || json_object_get(seen, key))
			continue;
		json_object_set_new(seen, key, json_true());
		if (n >= from && n < from + first)
			json_array_append_new(nodes, type ? collection_json(c, v->experiment, v->collection, v->type)
							  : type_json(object, v->type));
		n++;
	}
	json_decref(seen);
	return graphql_connection(nodes, arena_printf(c->arena, "%" PRId64, from + first), from + first < n, n);
}

json_t *wandb_artifact_types(struct call *c, json_t *object, const struct graphql_field *f)
{
	const char *name = graphql_text(f, "name"),
		   *type = json_string_value(json_object_get(object, "artifactTypeName"));

	if (!strcmp(f->name, "artifactType"))
		return name ? type_json(object, name) : NULL;
	return list_distinct(c, object, f, strcmp(f->name, "artifactTypes") ? (type ? type : "") : NULL);
}

json_t *wandb_run_artifacts(struct call *c, json_t *object, const struct graphql_field *f)
{
	const bool made = !strcmp(f->name, "outputArtifacts");

	return give_versions(c,
			     &(struct artifact_version_sel){ .by = made ? ARTIFACT_MADE_BY : ARTIFACT_USED_BY,
							     .text = json_string_value(json_object_get(object, "id")) },
			     f);
}

/* --- changes ---------------------------------------------------------------------------------------------------- */

enum call_next wandb_submit_version(struct call *c, const struct artifact_version_op *op,
				    enum call_next (*then)(struct call *c, const struct ingest_result *res))
{
	const struct ingest_op change = artifact_version_op(op);

	return api_submit(c, &(struct api_change){ .op = &change, .field = "artifact", .then = then });
}

enum call_next wandb_give_version(struct call *c, const struct ingest_result *res)
{
	const struct artifact_version *v =
		find_one(c, &(struct artifact_version_sel){ .by = ARTIFACT_BY_ID, .id = strtoll(res->id, NULL, 10) });

	if (c->status != 200)
		return CALL_DONE;
	return graphql_give(c, json_pack("{s:o, s:b}", "artifact", v ? version_json(c, v) : json_null(), "success", 1));
}

size_t wandb_read_names(struct call *c, json_t *list, const char *member, const char *mark, struct ingest_kv **ret)
{
	json_t *item;
	size_t i, n = 0;

	*ret = arena_array(c->arena, json_array_size(list) + 1, sizeof(**ret));
	json_array_foreach(list, i, item) {
		const char *text = json_string_value(json_is_object(item) ? json_object_get(item, member) : item);

		if (text && *text)
			(*ret)[n++] = (struct ingest_kv){ arena_strdup(c->arena, text), mark };
	}
	return n;
}

/* The names in a list of the arguments, added to those in *io, or taken from them. */
static void change_names(struct call *c, json_t *list, const char *member, bool remove, json_t **io)
{
	struct ingest_kv *names;
	size_t n = wandb_read_names(c, list, member, "", &names), k;
	json_t *kept = json_array(), *name;

	json_array_foreach(*io, k, name) {
		size_t i = 0;

		while (i < n && strcmp(names[i].key, wandb_default(json_string_value(name), "")))
			i++;
		if (i == n)
			json_array_append(kept, name);
	}
	for (size_t i = 0; i < n && !remove; i++)
		json_array_append_new(kept, json_string(names[i].key));
	json_decref(*io);
	*io = kept;
}

static void change_tags(struct call *c, const struct graphql_field *f, json_t *said)
{
	json_t *tags = json_incref(json_object_get(said, "tags"));

	change_names(c, graphql_arg(f, "tags"), "tagName", false, &tags);
	change_names(c, graphql_arg(f, "tagsToAdd"), "tagName", false, &tags);
	change_names(c, graphql_arg(f, "tagsToDelete"), "tagName", true, &tags);
	json_object_set_new(said, "tags", tags);
}

/* What was said of a version, to be changed; the caller owns it. */
static json_t *parse_said(const struct artifact_version *v)
{
	json_t *o = wandb_parse(v->said);

	if (json_is_object(o))
		return o;
	json_decref(o);
	return json_object();
}

/* As the text that is stored; takes said over. */
static const char *write_said(struct call *c, json_t *said)
{
	char *text = json_dumps(said, JSON_COMPACT);
	const char *ret = arena_strdup(c->arena, text ? text : "{}");

	free(text);
	json_decref(said);
	return ret;
}

/* What the arguments say of a version. */
static void take_said(struct call *c, const struct graphql_field *f, json_t *said)
{
	static const char *const members[] = { "description", "metadata", "historyStep" };

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (graphql_arg(f, members[i]))
			json_object_set(said, members[i], graphql_arg(f, members[i]));
	change_tags(c, f, said);
}

bool wandb_run_of_args(struct call *c, const struct graphql_field *f, struct wandb_run *ret)
{
	const char *name = graphql_text(f, "runName");

	*ret = (struct wandb_run){ .id = "" };
	return !name || !*name ||
	       wandb_find(c, graphql_text(f, "entityName"), graphql_text(f, "projectName"), name, ret);
}

static bool is_collection_name(const char *name)
{
	return name && *name && strlen(name) <= 128 && !strpbrk(name, "/\\:%") && artifact_path_ok(name);
}

/* Content that is there already gets the tags that this time were given to it. */
static enum call_next give_created(struct call *c, const struct ingest_result *res)
{
	const struct graphql_field *f = *graphql_own(c);
	const struct artifact_version_sel sel = { .by = ARTIFACT_BY_ID, .id = strtoll(res->id, NULL, 10) };
	const struct artifact_version *v =
		res->existed && json_array_size(graphql_arg(f, "tags")) ? wandb_find_version(c, &sel) : NULL;
	struct artifact_version_op op = { .what = ARTIFACT_UPDATE, .id = sel.id };
	json_t *said;

	if (!v)
		return wandb_give_version(c, res);
	said = parse_said(v);
	change_tags(c, f, said);
	op.said = write_said(c, said);
	return wandb_submit_version(c, &op, wandb_give_version);
}

enum call_next wandb_root_createArtifact(struct call *c, const struct graphql_field *f)
{
	const char *entity = graphql_text(f, "entityName"), *project = graphql_text(f, "projectName");
	const char *type = graphql_text(f, "artifactTypeName"), *digest = graphql_text(f, "digest");
	const char *client = graphql_text(f, "clientID"), *shared = graphql_text(f, "distributedID");
	const char *first = json_string_value(json_array_get(graphql_arg(f, "artifactCollectionNames"), 0));
	struct artifact_version_op op = { .what = ARTIFACT_CREATE,
					  .collection =
						  wandb_default(graphql_text(f, "artifactCollectionName"), first) };
	struct ingest_kv *aliases;
	struct wandb_run r;
	json_t *o, *named = NULL;

	if (!is_collection_name(op.collection) || !type || !digest)
		return graphql_refuse(
			c, "an artifact needs a type, a digest and a name of at most 128 characters without /\\:%%");
	if (!wandb_run_of_args(c, f, &r))
		return CALL_DONE;
	o = wandb_project_json(c, entity && *entity ? entity : WANDB_ENTITY,
			       project && *project ? project : WANDB_PROJECT);
	op.experiment = r.found ? strtoll(r.run.experiment_id, NULL, 10) : experiment_of(o);
	json_decref(o);
	if (op.experiment < 0)
		return graphql_refuse(c, "there is no project %.100s", project ? project : "");
	op.type = type;
	op.digest = digest;
	op.shared = shared && *shared;
	op.client = op.shared ? arena_printf(c->arena, "distributed/%s", shared) : wandb_default(client, "");
	op.run = r.found ? r.id : "";
	o = json_object();
	take_said(c, f, o);
	change_names(c, graphql_arg(f, "aliases"), "alias", false, &named);
	json_object_set_new(o, "aliases", named);
	op.said = write_said(c, o);
	op.pair_count = wandb_read_names(c, graphql_arg(f, "aliases"), "alias", "", &aliases);
	op.pairs = aliases;
	*graphql_own(c) = (void *)(uintptr_t)f;
	return wandb_submit_version(c, &op, give_created);
}

/* The page shows what a run uses as a data set. */
static enum call_next build_use(struct call *c, struct wandb_job *job)
{
	const struct artifact_version *v = job->state;
	double now_s = clock_wall_s();
	const char *name = arena_printf(c->arena, "%s:v%" PRId64, v->collection, v->version);
	const struct event_input in = { .name = wandb_span(name),
					.digest = wandb_span(v->digest),
					.context = wandb_span(v->type),
					.source_type = wandb_span("wandb"),
					.source = wandb_span(wandb_artifact_id(c, v->id)) };

	if (!wandb_begin(c, job, &(struct wandb_writer){ .name = "about", .start_s = now_s }))
		return CALL_DONE;
	encode_input(&job->records, now_s, &in);
	return wandb_submit(c, job);
}

static enum call_next use_version(struct call *c)
{
	struct wandb_job *job = wandb_job_of(c);
	const struct artifact_version *v = job->state;
	const struct artifact_version_op op = { .what = ARTIFACT_USE, .id = v->id, .run = job->run.id };

	return wandb_submit_version(c, &op, wandb_give_version);
}

enum call_next wandb_root_useArtifact(struct call *c, const struct graphql_field *f)
{
	const struct artifact_version *v = wandb_version_of_id(c, graphql_text(f, "artifactID"));
	struct wandb_job *job = arena_alloc(c->arena, sizeof(*job));

	if (!v)
		return c->status == 200 ? graphql_refuse(c, "there is no such artifact") : CALL_DONE;
	*job = (struct wandb_job){ .build = build_use, .then = use_version, .state = (void *)(uintptr_t)v };
	if (!wandb_run_of_args(c, f, &job->run))
		return CALL_DONE;
	return job->run.found ? wandb_change(c, job) : graphql_refuse(c, "there is no such run");
}

enum call_next wandb_root_artifact(struct call *c, const struct graphql_field *f)
{
	const struct artifact_version *v = wandb_version_of_id(c, graphql_text(f, "id"));

	return c->status == 200 ? graphql_give(c, v ? version_json(c, v) : NULL) : CALL_DONE;
}

enum call_next wandb_root_clientIDMapping(struct call *c, const struct graphql_field *f)
{
	const char *client = graphql_text(f, "clientID");
	const struct artifact_version *v =
		client && *client
			? find_one(c, &(struct artifact_version_sel){ .by = ARTIFACT_BY_CLIENT, .text = client })
			: NULL;

	return c->status == 200
		       ? graphql_give(c, v ? json_pack("{s:s}", "serverID", wandb_artifact_id(c, v->id)) : NULL)
		       : CALL_DONE;
}

enum call_next wandb_root_artifactCollection(struct call *c, const struct graphql_field *f)
{
	const char *id = graphql_text(f, "id"), *slash = id ? strchr(id, '/') : NULL;

	return graphql_give(c, slash ? collection_json(c, strtoll(id, NULL, 10), slash + 1, "") : NULL);
}

/* addAliases, deleteAliases and updateArtifact. */
static enum call_next change_aliases(struct call *c, const struct graphql_field *f, const char *mark)
{
	struct artifact_version_op op = { .what = ARTIFACT_ALIAS,
					  .id = wandb_read_artifact_id(graphql_text(f, "artifactID")) };
	struct ingest_kv *pairs;

	op.pair_count = wandb_read_names(c, graphql_arg(f, "aliases"), "alias", mark, &pairs);
	op.pairs = pairs;
	return wandb_submit_version(c, &op, wandb_give_version);
}

enum call_next wandb_root_addAliases(struct call *c, const struct graphql_field *f)
{
	return change_aliases(c, f, "");
}

enum call_next wandb_root_deleteAliases(struct call *c, const struct graphql_field *f)
{
	return change_aliases(c, f, "-");
}

enum call_next wandb_root_updateArtifact(struct call *c, const struct graphql_field *f)
{
	const struct artifact_version *v = wandb_version_of_id(c, graphql_text(f, "artifactID"));
	struct artifact_version_op op = { .what = ARTIFACT_UPDATE };
	struct ingest_kv *pairs;
	json_t *said;

	if (!v)
		return c->status == 200 ? graphql_refuse(c, "there is no such artifact") : CALL_DONE;
	op.id = v->id;
	said = parse_said(v);
	take_said(c, f, said);
	op.said = write_said(c, said);
	op.pair_count = wandb_read_names(c, graphql_arg(f, "aliases"), "alias", "", &pairs);
	op.pairs = pairs;
	return wandb_submit_version(c, &op, wandb_give_version);
}

enum call_next wandb_root_deleteArtifact(struct call *c, const struct graphql_field *f)
{
	const struct artifact_version_op op = { .what = ARTIFACT_REMOVE,
						.aliased = json_is_true(graphql_arg(f, "deleteAliases")),
						.id = wandb_read_artifact_id(graphql_text(f, "artifactID")) };

	return wandb_submit_version(c, &op, wandb_give_version);
}
