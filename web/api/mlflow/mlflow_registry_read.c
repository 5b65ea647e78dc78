/* mlflow_registry_read.c: finds registered models and versions for requests, and writes a version as JSON. Knows no
 * route. */
#include "web/api/mlflow/mlflow_errors.h"

#include <string.h>

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
	ml_write_tag_list(j, "tags", v->tags, v->tag_count);
	if (v->alias_count) {
		js_key(j, "aliases");
		js_open(j, '[');
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
	struct js j = { .out = &c->out };
	struct registered_version v;

	if (!ml_find_version(c, name, version, &v))
		return CALL_DONE;
	js_open(&j, '{');
	js_key(&j, "model_version");
	ml_write_version(c, &j, &v);
	js_close(&j, '}');
	return CALL_DONE;
}
