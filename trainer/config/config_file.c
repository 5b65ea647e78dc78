/* SPDX-License-Identifier: Apache-2.0 */
/* config_file.c: the file of --config, in JSON or YAML: an object of flag names and values, or the output of
 * `dptrain config --json`. Of the latter only values that the user set are used, so that derived values are derived
 * again. */
#include <stdio.h>
#include <string.h>

#include "tracker/base/arena.h"
#include "trainer/config/document.h"
#include "trainer/config/flags.h"

static const char *json_type_phrase(const json_t *v)
{
	static const char *const names[] = { [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",
					     [JSON_STRING] = "a string", [JSON_INTEGER] = "a number",
					     [JSON_REAL] = "a number", [JSON_TRUE] = "true", [JSON_FALSE] = "false",
					     [JSON_NULL] = "null" };

	return names[json_typeof(v)];
}

/* Returns the value as it would be typed; NULL if its type does not fit the flag. */
static const char *value_as_typed(const struct flag *f, const json_t *v, char *scratch, size_t n)
{
	bool number = f->kind == KIND_INT || f->kind == KIND_REAL;

	if ((number || f->kind == KIND_TEXT) && json_is_integer(v)) { /* a text may look like one: --nnodes 2 */
		snprintf(scratch, n, "%lld", (long long)json_integer_value(v));
		return scratch;
	}
	if (number && json_is_real(v)) {
		snprintf(scratch, n, "%.17g", json_real_value(v));
		return scratch;
	}
	if (f->kind == KIND_BOOL && json_is_boolean(v))
		return json_is_true(v) ? "yes" : "no";
	if ((!number || flag_word(f)) && f->kind != KIND_BOOL && json_is_string(v))
		return json_string_value(v);
	return NULL;
}

static int report_unknown_key(const char *path, const char *key, struct err *err)
{
	const char *names[FLAG_COUNT], *near;

	for (int i = 0; i < FLAG_COUNT; i++)
		names[i] = flag_get((enum flag_id)i)->name;
	near = config_nearest(key, names, FLAG_COUNT);
	return err_set(err, ERR_USAGE, "%.200s: unknown key '%.80s'%s%s%s", path, key, near ? "; did you mean '" : "",
		       near ? near : "", near ? "'?" : "");
}

/* Sets one flag from a member of the file, unless the command line or the environment has set it. */
static int apply_config_key(struct run_config *cfg, const char *path, const char *key, const json_t *v, struct err *err)
{
	const struct flag_alias *alias;
	const char *text;
	enum flag_id id;
	char label[400], scratch[40];
	int rc;

	if (!flag_find(key, &id, &alias) || (alias && (alias->value || !alias->name[1])))
		return report_unknown_key(path, key, err);
	if (id == FLAG_config || id == FLAG_json)
		return err_set(err, ERR_USAGE, "%.200s: '%s' is not allowed in a configuration file", path, key);
	if (json_is_null(v))
		return 0;
	snprintf(label, sizeof(label), "%.200s: %.80s", path, key);
	text = value_as_typed(flag_get(id), v, scratch, sizeof(scratch));
	if (!text)
		return err_set(err, ERR_USAGE, "%s is %s: expected %s", label, json_type_phrase(v),
			       flag_get(id)->kind == KIND_BOOL					   ? "true or false"
			       : flag_get(id)->kind == KIND_INT || flag_get(id)->kind == KIND_REAL ? "a number"
												   : "a string");
	/* One file may serve training and bench: check flags that this command does not have, and ignore them. */
	if (cfg->origin[id] != ORIGIN_DEFAULT || !flag_known_to(id, cfg->command)) {
		struct run_config scrap = { .arena = cfg->arena };

		return flag_store(&scrap, id, label, text, err);
	}
	rc = flag_store(cfg, id, label, text, err);
	if (!rc)
		cfg->origin[id] = ORIGIN_FILE;
	return rc;
}

/* Returns true if a printed configuration says that the user did not set this value. */
static bool is_default_or_derived(const json_t *origins, const char *key)
{
	const char *o = json_string_value(json_object_get(origins, key));

	return o && (!strcmp(o, config_origin_name(ORIGIN_DEFAULT)) || !strcmp(o, config_origin_name(ORIGIN_DERIVED)));
}

static int apply_config_keys(struct run_config *cfg, const char *path, json_t *root, struct err *err)
{
	json_t *values = json_object_get(root, "values"), *origins = json_object_get(root, "origins"), *v;
	bool printed = json_is_object(values) && json_is_object(origins);
	const char *key;
	int rc;

	json_object_foreach(printed ? values : root, key, v) {
		if (printed && (is_default_or_derived(origins, key) || !strcmp(key, "config") || !strcmp(key, "json")))
			continue;
		rc = apply_config_key(cfg, path, key, v, err);
		if (rc)
			return rc;
	}
	return 0;
}

int config_file_read(struct run_config *cfg, const char *path, struct err *err)
{
	json_t *root = NULL;
	int rc = document_read(&root, path, err);

	if (!rc && !json_is_object(root))
		rc = err_set(err, ERR_USAGE, "%.200s: must be one object of flag names and values", path);
	else if (!rc)
		rc = apply_config_keys(cfg, path, root, err);
	json_decref(root);
	return rc;
}
