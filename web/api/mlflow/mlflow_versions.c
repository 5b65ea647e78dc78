/* SPDX-License-Identifier: Apache-2.0 */
/* mlflow_versions.c: MLflow's versions of registered models: creation, description, stages, tags, search. */
#include "web/api/mlflow/mlflow_request.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 10000, PAGE_MAX = 200000 };

#define VERSIONS_TAG "mlflow.modelVersions" /* tag of a logged model with its registered versions */

/* The version that the reply will contain. */
struct version_ref {
	const char *name, *model; /* model: id of its logged model, or NULL */
	int64_t version;
};

static enum call_next reply_version_ref(struct call *c, const struct ingest_result *res)
{
	const struct version_ref *k = c->own;

	(void)res;
	return ml_reply_version(c, k->name, k->version);
}

/* --- creation --------------------------------------------------------------------------------------------------- */

/* A logged model lists its versions in a tag, as JSON. Appends this version. */
static enum call_next append_version_tag(struct call *c, const struct version_ref *k)
{
	json_t *list = NULL, *entry = json_pack("{s:s, s:I}", "name", k->name, "version", (json_int_t)k->version);
	struct ingest_kv tag = { VERSIONS_TAG, NULL };
	const struct mlflow_op op = { .kind = &mlflow_model_tags, .model = k->model, .tags = &tag, .tag_count = 1 };
	struct model m;
	char *text;
	size_t i;

	if (!ml_find_model(c, k->model, &m)) {
		json_decref(entry);
		return CALL_DONE;
	}
	for (i = 0; i < m.tag_count; i++)
		if (!strcmp(m.tags[i].key, VERSIONS_TAG))
			list = json_loads(m.tags[i].value, 0, NULL);
	if (!json_is_array(list)) {
		json_decref(list);
		list = json_array();
	}
	json_array_append_new(list, entry);
	text = json_dumps(list, 0);
	tag.value = text ? arena_strdup(c->arena, text) : NULL;
	free(text);
	json_decref(list);
	return tag.value ? ml_submit(c, &op, reply_version_ref)
			 : ml_fail(c, ML_TEMPORARILY_UNAVAILABLE, "out of memory");
}

static enum call_next finish_version(struct call *c, const struct ingest_result *res)
{
	struct version_ref *k = c->own;

	k->version = atoll(res->id);
	return k->model ? append_version_tag(c, k) : reply_version_ref(c, res);
}

static bool has_prompt_tag(const struct registry_op *op)
{
	size_t i;

	for (i = 0; i < op->tag_count; i++)
		if (!strcmp(op->tags[i].key, ML_PROMPT_TAG))
			return true;
	return false;
}

enum call_next on_ml_version_create(struct call *c)
{
	struct registry_op op = { .kind = &registry_version_new, .text = "", .run_link = "" };
	struct ml_source source = { .run = "", .model = "" };
	struct version_ref *k = arena_alloc(c->arena, sizeof(*k));
	json_t *tags = NULL;
	const struct ml_field fields[] = {
		{ "name", ML_STRING, true, &op.name, NULL },
		{ "source", ML_STRING, true, &source.uri, NULL },
		{ "run_id", ML_STRING, false, &source.run, &source.run_given },
		{ "tags", ML_LIST, false, &tags, NULL },
		{ "run_link", ML_STRING, false, &op.run_link, NULL },
		{ "description", ML_STRING, false, &op.text, NULL },
		{ "model_id", ML_STRING, false, &source.model, &source.model_given },
		{ 0 },
	};

	if (!ml_args(c, fields) || !ml_registry_tags(c, tags, &op.tags, &op.tag_count))
		return CALL_DONE;
	source.prompt = has_prompt_tag(&op);
	if (!ml_source_follow(c, &source) || !ml_model_name_ok(c, "name", op.name))
		return CALL_DONE;
	op.source = source.uri;
	op.location = source.location;
	op.run = source.run;
	*k = (struct version_ref){ op.name, *source.model && !source.prompt ? source.model : NULL, 0 };
	c->own = k;
	return ml_submit_registry(c, &op, finish_version);
}

/* --- changes -------------------------------------------------------------------------------------------------- */

/* Reads name and version, into op and for the reply, and further members (NULL: none). */
static bool read_version_ref(struct call *c, struct registry_op *op, const struct ml_field *more)
{
	const char *version = NULL;
	const struct ml_field fields[] = { { "name", ML_STRING, true, &op->name, NULL },
					   { "version", ML_STRING, true, &version, NULL },
					   { 0 } };
	struct version_ref *k = arena_alloc(c->arena, sizeof(*k));
	json_t *request = ml_request(c);

	if (!request || !ml_read(c, request, fields) || (more && !ml_read(c, request, more)) ||
	    !ml_model_name_ok(c, "name", op->name) || !ml_version_number(c, version, &op->version))
		return false;
	*k = (struct version_ref){ op->name, NULL, op->version };
	c->own = k;
	return true;
}

enum call_next on_ml_version_update(struct call *c)
{
	struct registry_op op = { .kind = &registry_version_describe };
	const struct ml_field more[] = { { "description", ML_STRING, false, &op.text, NULL }, { 0 } };

	return read_version_ref(c, &op, more) ? ml_submit_registry(c, &op, reply_version_ref) : CALL_DONE;
}

enum call_next on_ml_version_stage(struct call *c)
{
	struct registry_op op = { .kind = &registry_version_stage };
	const char *word = NULL;
	const struct ml_field more[] = { { "stage", ML_STRING, true, &word, NULL },
					 { "archive_existing_versions", ML_BOOL, false, &op.archive, NULL },
					 { 0 } };

	if (!read_version_ref(c, &op, more))
		return CALL_DONE;
	op.text = ml_stage(c, word);
	if (!op.text)
		return CALL_DONE;
	if (op.archive && strcmp(op.text, "Staging") && strcmp(op.text, "Production"))
		return ml_fail(c, ML_INVALID_PARAMETER_VALUE,
			       "Model version transition cannot archive existing model versions because '%s' is not an "
			       "Active stage. Valid stages are ['Staging', 'Production']", word);
	return ml_submit_registry(c, &op, reply_version_ref);
}

enum call_next on_ml_version_delete(struct call *c)
{
	struct registry_op op = { .kind = &registry_version_delete };

	return read_version_ref(c, &op, NULL) ? ml_submit_registry(c, &op, ml_empty) : CALL_DONE;
}

enum call_next on_ml_version_tag(struct call *c)
{
	struct registry_op op = { .kind = &registry_version_tag };
	struct ingest_kv tag = { .value = "" };
	const struct ml_field more[] = { { "key", ML_STRING, true, &tag.key, NULL },
					 { "value", ML_STRING, false, &tag.value, NULL },
					 { 0 } };

	if (!read_version_ref(c, &op, more) || !ml_registry_tag_ok(c, &tag))
		return CALL_DONE;
	op.tags = &tag;
	op.tag_count = 1;
	return ml_submit_registry(c, &op, ml_empty);
}

enum call_next on_ml_version_untag(struct call *c)
{
	struct registry_op op = { .kind = &registry_version_untag };
	const struct ml_field more[] = { { "key", ML_STRING, true, &op.text, NULL }, { 0 } };

	if (!read_version_ref(c, &op, more) || !ml_name_ok(c, "key", op.text))
		return CALL_DONE;
	return ml_submit_registry(c, &op, ml_empty);
}

/* --- reads ---------------------------------------------------------------------------------------------------- */

enum call_next on_ml_version_get(struct call *c)
{
	struct registry_op op = { 0 };

	return read_version_ref(c, &op, NULL) ? ml_reply_version(c, op.name, op.version) : CALL_DONE;
}

enum call_next on_ml_version_uri(struct call *c)
{
	const char *name = "", *version = "";
	const struct ml_field fields[] = { { "name", ML_STRING, false, &name, NULL },
					   { "version", ML_STRING, false, &version, NULL },
					   { 0 } };
	struct js j = { .out = &c->out };
	struct registered_version v;
	int64_t number;

	if (!ml_args(c, fields) || !ml_model_name_ok(c, "name", name) || !ml_version_number(c, version, &number) ||
	    !ml_find_version(c, name, number, &v))
		return CALL_DONE;
	js_open(&j, '{');
	js_key_str(&j, "artifact_uri", v.location);
	js_close(&j, '}');
	return CALL_DONE;
}

enum call_next on_ml_version_search(struct call *c)
{
	struct registered_opts o = { .limit = PAGE };
	struct js j = { .out = &c->out };
	struct registered_versions list;
	struct err err = ERR_INIT;
	size_t i;

	if (!ml_registry_page(c, PAGE_MAX, &o))
		return CALL_DONE;
	if (registered_versions_search(c->api->store, &o, c->arena, &list, &err))
		return ml_fail_err(c, &err);
	js_open(&j, '{');
	if (list.count) {
		js_key_open(&j, "model_versions", '[');
		for (i = 0; i < list.count; i++)
			ml_write_version(c, &j, &list.items[i]);
		js_close(&j, ']');
	}
	if (list.next_page_token)
		js_key_str(&j, "next_page_token", list.next_page_token);
	js_close(&j, '}');
	return CALL_DONE;
}
