/* mlflow_registry_rules.c: MLflow's rules for a registered model, a version, an alias, a stage, a tag and a page. Knows
 * no route. */
#include "web/api/mlflow/mlflow_errors.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

bool ml_alias_ok(struct call *c, const char *alias)
{
	if (ml_word_ok(alias))
		return ml_length_ok(c, "Registered model alias name", ALIAS_CHARS, alias);
	ml_fail(c, ML_INVALID_PARAMETER_VALUE,
		"Invalid alias name: '%s'. Names may only contain alphanumerics, underscores (_), and dashes (-).",
		alias);
	return false;
}

/* Refuses words that always name a version: latest, v7. */
bool ml_alias_free(struct call *c, const char *alias)
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
	size_t n = json_array_size(list), i;
	struct ingest_kv *kv = arena_array(c->arena, n + 1, sizeof(*kv));

	if (!kv)
		return ml_fail(c, ML_TEMPORARILY_UNAVAILABLE, "out of memory"), false;
	for (i = 0; i < n; i++) {
		const struct ml_field fields[] = { { "key", ML_STRING, false, &kv[i].key, NULL },
						   { "value", ML_STRING, false, &kv[i].value, NULL },
						   { 0 } };

		kv[i] = (struct ingest_kv){ "", "" };
		if (!ml_read_item(c, list, "tags", i, fields) || !ml_registry_tag_ok(c, &kv[i]))
			return false;
	}
	*ret = kv;
	*ret_count = n;
	return true;
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
