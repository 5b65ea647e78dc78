/* SPDX-License-Identifier: Apache-2.0 */
/* mlflow_registry.c: MLflow's registered models: names, tags and aliases, and what models and versions share: rules,
 * look-up, a version as JSON. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "web/api/mlflow/mlflow_request.h"
#include "web/store/audit/audit.h"

/* --- rules for names, aliases, stages, tags and pages ----------------------------------------------------------- */

enum { NAME_CHARS = 256, ALIAS_CHARS = 255, TAG_KEY_CHARS = 250, TAG_VALUE_CHARS = 100000 };

static bool is_blank_text(const char *text)
{
	return !text[strspn(text, " \t\r\n\f\v")];
}

bool ml_model_name_ok(struct call *c, const char *path, const char *name)
{
	if (is_blank_text(name))
		ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Missing value for required parameter '%s'.", path);
	else if (strpbrk(name, "/:"))
		ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Invalid model name '%s'. Names cannot contain '/' or ':'.",
			name);
	else
		return ml_path_ok(c, "name", name) && ml_length_ok(c, path, NAME_CHARS, name);
	return false;
}

static bool ml_alias_ok(struct call *c, const char *alias)
{
	if (ml_word_ok(alias))
		return ml_length_ok(c, "Registered model alias name", ALIAS_CHARS, alias);
	ml_fail(c, ML_INVALID_PARAMETER_VALUE,
		"Invalid alias name: '%s'. Names may only contain alphanumerics, underscores (_), and dashes (-).",
		alias);
	return false;
}

/* Refuses words that always name a version: latest, v7. */
static bool ml_alias_free(struct call *c, const char *alias)
{
	size_t digits = *alias ? strspn(alias + 1, "0123456789") : 0;

	if (!strcasecmp(alias, "latest"))
		ml_fail(c, ML_INVALID_PARAMETER_VALUE, "'latest' alias name (case insensitive) is reserved.");
	else if ((*alias == 'v' || *alias == 'V') && digits && !alias[1 + digits])
		ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Version alias name '%s' is reserved.", alias);
	else
		return true;
	return false;
}

bool ml_version_number(struct call *c, const char *text, int64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoll(text, &end, 10);
	if (end != text && is_blank_text(end)) {
		*ret = errno ? 0 : *ret; /* version numbers are never that long */
		return true;
	}
	ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Parameter 'version' must be an integer, got '%s'.", text);
	return false;
}

bool ml_registry_tag_ok(struct call *c, const struct ingest_kv *tag)
{
	return ml_name_ok(c, "key", tag->key) && ml_length_ok(c, "key", TAG_KEY_CHARS, tag->key) &&
	       ml_length_ok(c, "value", TAG_VALUE_CHARS, tag->value);
}

bool ml_registry_tags(struct call *c, json_t *list, const struct ingest_kv **ret, size_t *ret_count)
{
	struct ingest_kv *kv = ml_any_pairs(c, list, "tags", false, ret_count);

	for (size_t i = 0; kv && i < *ret_count; i++)
		if (!ml_registry_tag_ok(c, &kv[i]))
			return false;
	*ret = kv;
	return kv != NULL;
}

const char *ml_stage(struct call *c, const char *word)
{
	static const char *const stages[] = { "None", "Staging", "Production", "Archived" };
	size_t i;

	for (i = 0; i < sizeof(stages) / sizeof(stages[0]); i++)
		if (!strcasecmp(stages[i], word))
			return stages[i];
	ml_fail(c, ML_INVALID_PARAMETER_VALUE,
		"Invalid Model Version stage: %s. Value must be one of None, Staging, Production, Archived.", word);
	return NULL;
}

bool ml_registry_page(struct call *c, int64_t most, struct registered_opts *ret)
{
	struct ml_strings order = { 0 };
	int64_t limit = (int64_t)ret->limit;
	const struct ml_field fields[] = {
		{ "filter", ML_STRING, false, &ret->filter, NULL },
		{ "max_results", ML_INT, false, &limit, NULL },
		{ "order_by", ML_STRINGS, false, &order, NULL },
		{ "page_token", ML_STRING, false, &ret->page_token, NULL },
		{ 0 },
	};

	if (!ml_args(c, fields))
		return false;
	if (limit > most)
		ml_fail(c, ML_INVALID_PARAMETER_VALUE,
			"Invalid value for request parameter max_results. It must be at most %lld, but got value %lld",
			(long long)most, (long long)limit);
	else if (limit < 1)
		ml_fail(c, ML_INVALID_PARAMETER_VALUE,
			"Invalid value for max_results. It must be a positive integer, but got %lld", (long long)limit);
	ret->limit = (size_t)limit;
	ret->order = order.items;
	ret->order_count = order.count;
	return limit >= 1 && limit <= most;
}

/* --- look-up, a version as JSON --------------------------------------------------------------------------------- */

bool ml_find_registered(struct call *c, const char *name, struct registered_model *ret)
{
	struct err err = ERR_INIT;
	int rc = registered_get(c->api->store, name, c->arena, ret, &err);

	if (rc == ERR_NOENT)
		ml_fail(c, ML_RESOURCE_DOES_NOT_EXIST, "Registered Model with name=%s not found", name);
	else if (rc)
		ml_fail_err(c, &err);
	return !rc;
}

int64_t ml_find_alias(struct call *c, const struct registered_model *m, const char *alias)
{
	bool latest = !strcasecmp(alias, "latest");
	int64_t newest = 0;
	size_t i;

	for (i = 0; i < m->alias_count && !latest; i++)
		if (!strcmp(m->aliases[i].alias, alias))
			return m->aliases[i].version;
	for (i = 0; i < m->latest_count && latest; i++)
		if (m->latest[i].version > newest)
			newest = m->latest[i].version;
	if (latest && !newest)
		ml_fail(c, ML_RESOURCE_DOES_NOT_EXIST, "Latest version not found for model %s.", m->name);
	else if (!latest)
		ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Registered model alias %s not found.", alias);
	return newest;
}

static void write_optional_str(struct js *j, const char *key, const char *text)
{
	if (text)
		js_key_str(j, key, text);
}

void ml_write_version(struct call *c, struct js *j, const struct registered_version *v)
{
	size_t i;

	js_open(j, '{');
	js_key_str(j, "name", v->model);
	js_key_str(j, "version", arena_printf(c->arena, "%lld", (long long)v->version));
	js_key_int(j, "creation_timestamp", v->created_ms);
	js_key_int(j, "last_updated_timestamp", v->updated_ms);
	write_optional_str(j, "user_id", v->user);
	js_key_str(j, "current_stage", v->stage);
	write_optional_str(j, "description", v->description);
	js_key_str(j, "source", v->source);
	write_optional_str(j, "run_id", v->run);
	js_key_str(j, "status", v->status);
	write_optional_str(j, "status_message", v->status_text);
	write_optional_str(j, "run_link", v->run_link);
	write_optional_str(j, "created_by", v->created_by);
	write_optional_str(j, "changed_by", v->changed_by);
	ml_write_tag_list(j, "tags", v->tags, v->tag_count);
	if (v->alias_count) {
		js_key_open(j, "aliases", '[');
		for (i = 0; i < v->alias_count; i++)
			js_str(j, v->aliases[i]);
		js_close(j, ']');
	}
	js_close(j, '}');
}

bool ml_find_version(struct call *c, const char *name, int64_t version, struct registered_version *ret)
{
	struct err err = ERR_INIT;
	int rc = registered_version_get(c->api->store, &(struct registered_version_name){ name, version }, c->arena,
					ret, &err);

	if (rc == ERR_NOENT)
		ml_fail(c, ML_RESOURCE_DOES_NOT_EXIST, "Model Version (name=%s, version=%lld) not found", name,
			(long long)version);
	else if (rc)
		ml_fail_err(c, &err);
	return !rc;
}

enum call_next ml_reply_version(struct call *c, const char *name, int64_t version)
{
	const char *id = arena_printf(c->arena, "%lld", (long long)version);
	const struct audit_objects o = { .object = "model_version", .name = name, .ids = &id, .count = 1 };
	struct js j = { .out = &c->out };
	struct err err = ERR_INIT;
	struct registered_version v;
	struct audit_authors by;

	if (!ml_find_version(c, name, version, &v))
		return CALL_DONE;
	if (audit_authors(c->api->store, &o, c->arena, &by, &err))
		return ml_fail_err(c, &err);
	v.created_by = by.created_by;
	v.changed_by = by.changed_by;
	js_open(&j, '{');
	js_key(&j, "model_version");
	ml_write_version(c, &j, &v);
	js_close(&j, '}');
	return CALL_DONE;
}

enum { PAGE = 100, PAGE_MAX = 1000 };

static void write_latest_versions(struct call *c, struct js *j, const struct registered_model *m)
{
	size_t i;

	if (!m->latest_count)
		return;
	js_key_open(j, "latest_versions", '[');
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
	js_key_open(j, "aliases", '[');
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
	    !ml_alias_free(c, op.text) || !ml_version_number(c, version, &op.version))
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
	const struct ml_field fields[] = { { "name", ML_STRING, true, &name, NULL },
					   { "stages", ML_STRINGS, false, &stages, NULL },
					   { 0 } };
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
		if (!any)
			js_key_open(&j, "model_versions", '[');
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
		js_key_open(&j, "registered_models", '[');
		for (i = 0; i < list.count; i++)
			write_registered_model(c, &j, &list.items[i]);
		js_close(&j, ']');
	}
	if (list.next_page_token)
		js_key_str(&j, "next_page_token", list.next_page_token);
	js_close(&j, '}');
	return CALL_DONE;
}
