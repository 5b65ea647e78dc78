/* mlflow_registry.c: MLflow's registered models: names, tags and aliases. */
#include "web/api/mlflow/mlflow_errors.h"

#include <string.h>

#include "web/api/handlers.h"

enum { PAGE = 100, PAGE_MAX = 1000 };

static void write_latest_versions(struct call *c, struct js *j, const struct registered_model *m)
{
	size_t i;

	if (!m->latest_count)
		return;
	js_key(j, "latest_versions");
	js_open(j, '[');
	for (i = 0; i < m->latest_count; i++) {
		struct registered_version v = m->latest[i];

		v.alias_count = 0; /* the model lists them */
		ml_write_version(c, j, &v);
	}
	js_close(j, ']');
}

static void write_model_aliases(struct call *c, struct js *j, const struct registered_model *m)
{
	size_t i;

	if (!m->alias_count)
		return;
	js_key(j, "aliases");
	js_open(j, '[');
	for (i = 0; i < m->alias_count; i++) {
		js_open(j, '{');
		js_key_str(j, "alias", m->aliases[i].alias);
		js_key_str(j, "version", arena_printf(c->arena, "%lld", (long long)m->aliases[i].version));
		js_close(j, '}');
	}
	js_close(j, ']');
}

static void write_registered_model(struct call *c, struct js *j, const struct registered_model *m)
{
	js_open(j, '{');
	js_key_str(j, "name", m->name);
	js_key_int(j, "creation_timestamp", m->created_ms);
	js_key_int(j, "last_updated_timestamp", m->updated_ms);
	if (*m->description)
		js_key_str(j, "description", m->description);
	write_latest_versions(c, j, m);
	ml_write_tag_list(j, "tags", m->tags, m->tag_count);
	write_model_aliases(c, j, m);
	js_close(j, '}');
}

static enum call_next reply_registered_model(struct call *c, const char *name)
{
	struct js j = { .out = &c->out };
	struct registered_model m;

	if (!ml_find_registered(c, name, &m))
		return CALL_DONE;
	js_open(&j, '{');
	js_key(&j, "registered_model");
	write_registered_model(c, &j, &m);
	js_close(&j, '}');
	return CALL_DONE;
}

/* c->own is the name of the model after the change. */
static enum call_next reply_changed_registered(struct call *c, const struct ingest_result *res)
{
	(void)res;
	return reply_registered_model(c, c->own);
}

/* --- creation and changes ------------------------------------------------------------------------------------- */

enum call_next on_ml_registered_create(struct call *c)
{
	struct registry_op op = { .kind = &registry_model_new, .text = "" };
	json_t *tags = NULL;
	const struct ml_field fields[] = {
		{ "name", ML_STRING, true, &op.name, NULL },
		{ "tags", ML_LIST, false, &tags, NULL },
		{ "description", ML_STRING, false, &op.text, NULL },
		{ 0 },
	};

	if (!ml_args(c, fields) || !ml_model_name_ok(c, "name", op.name) ||
	    !ml_registry_tags(c, tags, &op.tags, &op.tag_count))
		return CALL_DONE;
	c->own = (void *)(uintptr_t)op.name;
	return ml_submit_registry(c, &op, reply_changed_registered);
}

/* Reads the name of the model and one more member (NULL: none). */
static bool read_name_and_field(struct call *c, struct registry_op *op, const char *field, bool required)
{
	const struct ml_field fields[] = {
		{ "name", ML_STRING, true, &op->name, NULL },
		{ field, ML_STRING, required, &op->text, NULL },
		{ 0 },
	};

	return ml_args(c, fields) && ml_model_name_ok(c, "name", op->name);
}

enum call_next on_ml_registered_rename(struct call *c)
{
	struct registry_op op = { .kind = &registry_model_rename };

	if (!read_name_and_field(c, &op, "new_name", true) || !ml_model_name_ok(c, "new_name", op.text))
		return CALL_DONE;
	c->own = (void *)(uintptr_t)op.text;
	return ml_submit_registry(c, &op, reply_changed_registered);
}

enum call_next on_ml_registered_update(struct call *c)
{
	struct registry_op op = { .kind = &registry_model_describe, .text = "" };

	if (!read_name_and_field(c, &op, "description", false))
		return CALL_DONE;
	c->own = (void *)(uintptr_t)op.name;
	return ml_submit_registry(c, &op, reply_changed_registered);
}

enum call_next on_ml_registered_delete(struct call *c)
{
	struct registry_op op = { .kind = &registry_model_delete };

	return read_name_and_field(c, &op, NULL, false) ? ml_submit_registry(c, &op, ml_empty) : CALL_DONE;
}

enum call_next on_ml_registered_get(struct call *c)
{
	struct registry_op op = { 0 };

	return read_name_and_field(c, &op, NULL, false) ? reply_registered_model(c, op.name) : CALL_DONE;
}

/* --- tags ----------------------------------------------------------------------------------------------------- */

enum call_next on_ml_registered_tag(struct call *c)
{
	struct ingest_kv tag = { .value = "" };
	struct registry_op op = { .kind = &registry_model_tag, .tags = &tag, .tag_count = 1 };
	const struct ml_field fields[] = {
		{ "name", ML_STRING, true, &op.name, NULL },
		{ "key", ML_STRING, true, &tag.key, NULL },
		{ "value", ML_STRING, false, &tag.value, NULL },
		{ 0 },
	};

	if (!ml_args(c, fields) || !ml_model_name_ok(c, "name", op.name) || !ml_registry_tag_ok(c, &tag))
		return CALL_DONE;
	return ml_submit_registry(c, &op, ml_empty);
}

enum call_next on_ml_registered_untag(struct call *c)
{
	struct registry_op op = { .kind = &registry_model_untag };

	if (!read_name_and_field(c, &op, "key", true) || !ml_name_ok(c, "key", op.text))
		return CALL_DONE;
	return ml_submit_registry(c, &op, ml_empty);
}

/* --- aliases -------------------------------------------------------------------------------------------------- */

enum call_next on_ml_alias_set(struct call *c)
{
	struct registry_op op = { .kind = &registry_alias };
	const char *version = NULL;
	const struct ml_field fields[] = {
		{ "name", ML_STRING, true, &op.name, NULL },
		{ "alias", ML_STRING, true, &op.text, NULL },
		{ "version", ML_STRING, true, &version, NULL },
		{ 0 },
	};

	if (!ml_args(c, fields) || !ml_model_name_ok(c, "name", op.name) || !ml_alias_ok(c, op.text) ||
	    !ml_alias_free(c, op.text) ||
	    !ml_version_number(c, version, &op.version))
		return CALL_DONE;
	return ml_submit_registry(c, &op, ml_empty);
}

enum call_next on_ml_alias_delete(struct call *c)
{
	struct registry_op op = { .kind = &registry_unalias };

	if (!read_name_and_field(c, &op, "alias", true) || !ml_alias_ok(c, op.text))
		return CALL_DONE;
	return ml_submit_registry(c, &op, ml_empty);
}

enum call_next on_ml_alias_get(struct call *c)
{
	struct registry_op op = { 0 };
	struct registered_model m;
	int64_t version;

	if (!read_name_and_field(c, &op, "alias", true) || !ml_alias_ok(c, op.text) ||
	    !ml_find_registered(c, op.name, &m))
		return CALL_DONE;
	version = ml_find_alias(c, &m, op.text);
	return version ? ml_reply_version(c, op.name, version) : CALL_DONE;
}

/* --- lists ---------------------------------------------------------------------------------------------------- */

enum call_next on_ml_registered_latest(struct call *c)
{
	struct js j = { .out = &c->out };
	struct ml_strings stages = { 0 };
	struct registered_model m;
	const char *name = NULL;
	const struct ml_field fields[] = {
		{ "name", ML_STRING, true, &name, NULL }, { "stages", ML_STRINGS, false, &stages, NULL }, { 0 }
	};
	bool any = false;
	size_t i, k;

	if (!ml_args(c, fields) || !ml_model_name_ok(c, "name", name) || !ml_find_registered(c, name, &m))
		return CALL_DONE;
	for (i = 0; i < stages.count; i++)
		if (!(stages.items[i] = ml_stage(c, stages.items[i])))
			return CALL_DONE;
	js_open(&j, '{');
	for (i = 0; i < m.latest_count; i++) {
		for (k = 0; k < stages.count && strcmp(stages.items[k], m.latest[i].stage); k++)
			;
		if (stages.count && k == stages.count)
			continue;
		if (!any) {
			js_key(&j, "model_versions");
			js_open(&j, '[');
		}
		any = true;
		ml_write_version(c, &j, &m.latest[i]);
	}
	if (any)
		js_close(&j, ']');
	js_close(&j, '}');
	return CALL_DONE;
}

enum call_next on_ml_registered_search(struct call *c)
{
	struct js j = { .out = &c->out };
	struct registered_opts o = { .limit = PAGE };
	struct registered_models list;
	struct err err = ERR_INIT;
	size_t i;

	if (!ml_registry_page(c, PAGE_MAX, &o))
		return CALL_DONE;
	if (registered_search(c->api->store, &o, c->arena, &list, &err))
		return ml_fail_err(c, &err);
	js_open(&j, '{');
	if (list.count) {
		js_key(&j, "registered_models");
		js_open(&j, '[');
		for (i = 0; i < list.count; i++)
			write_registered_model(c, &j, &list.items[i]);
		js_close(&j, ']');
	}
	if (list.next_page_token)
		js_key_str(&j, "next_page_token", list.next_page_token);
	js_close(&j, '}');
	return CALL_DONE;
}
