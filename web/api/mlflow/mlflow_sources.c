/* SPDX-License-Identifier: Apache-2.0 */
/* mlflow_sources.c: the source of a version of a registered model: which URIs are accepted, what they refer to, and
 * where the files are. A client's URI never names a file of this server outside the artifacts. */
#include "web/api/mlflow/mlflow_request.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define SOURCE_CHARS 2048 /* as of an artifact location */
#define RELATIVE                                                                                                       \
	"Invalid model version source: '%s'. If supplying a source as an http, https, local file path, ftp, "          \
	"objectstore, or mlflow-artifacts uri, an absolute path must be provided without relative path references "    \
	"present. Please provide an absolute path."
#define OUTSIDE                                                                                                        \
	"Invalid model version source: '%s'. To use a local path as a model version source, the %s request parameter " \
	"has to be specified and the local path has to be contained within the artifact directory of the run "         \
	"specified by the %s."

/* Length of the scheme in front of the colon; 0: none. */
static size_t uri_scheme_length(const char *uri)
{
	size_t n = isalpha((unsigned char)*uri) ? 1 : 0;

	while (n && (isalnum((unsigned char)uri[n]) || (uri[n] && strchr("+-.", uri[n]))))
		n++;
	return uri[n] == ':' ? n : 0;
}

static bool has_uri_scheme(const char *uri, const char *scheme)
{
	size_t n = uri_scheme_length(uri);

	return n == strlen(scheme) && !strncasecmp(uri, scheme, n);
}

/* The path of a URI on this machine; NULL for any other URI. */
static const char *local_source_path(const char *uri)
{
	static const char *const here[] = { "", ".", "localhost", "127.0.0.1" };
	size_t n, i;

	if (!uri_scheme_length(uri))
		return uri;
	if (!has_uri_scheme(uri, "file"))
		return NULL;
	uri += 5;
	if (strncmp(uri, "//", 2))
		return uri;
	uri += 2;
	n = strcspn(uri, "/");
	for (i = 0; i < sizeof(here) / sizeof(here[0]); i++)
		if (n == strlen(here[i]) && !strncmp(uri, here[i], n))
			return uri + n;
	return NULL;
}

/* Undoes one round of percent-encoding and "+" in place; returns true if the text changed. */
static bool unquote_once(char *text)
{
	char *to = text, *from = text, hex[3] = "";
	bool any = false;

	for (; *from; from++, to++) {
		*to = *from == '+' ? ' ' : *from;
		any |= *from == '+';
		if (*from != '%' || !isxdigit((unsigned char)from[1]) || !isxdigit((unsigned char)from[2]))
			continue;
		memcpy(hex, from + 1, 2);
		*to = (char)strtol(hex, NULL, 16);
		from += 2;
		any = true;
	}
	*to = '\0';
	return any;
}

char *ml_unquote(struct call *c, const char *text)
{
	char *copy = strlen(text) <= ML_URI_BYTES ? arena_strdup(c->arena, text) : NULL;
	int round = 0;

	while (copy && unquote_once(copy))
		if (++round == 8)
			return NULL;
	return copy;
}

/* Returns true if the path begins with a slash and no segment is "." or "..". */
static bool is_absolute_source_path(const char *path)
{
	size_t n;

	if (*path != '/' || !path[1])
		return false;
	for (; *path; path += n) {
		path += strspn(path, "/");
		n = strcspn(path, "/");
		if ((n == 1 && *path == '.') || (n == 2 && !strncmp(path, "..", 2)))
			return false;
	}
	return true;
}

static bool check_remote_source(struct call *c, const char *source)
{
	char *text = ml_unquote(c, source), *path;

	if (text) {
		path = text + uri_scheme_length(text) + 1;
		path[strcspn(path, "?#")] = '\0';
		if (!strncmp(path, "//", 2))
			path += 2 + strcspn(path + 2, "/");
		if (!strstr(source, "%00") && is_absolute_source_path(path))
			return true;
	}
	ml_fail(c, ML_INVALID_PARAMETER_VALUE, RELATIVE, source);
	return false;
}

bool ml_host_ok(struct call *c, const char *field, const char *uri)
{
	static const char *const schemes[] = { "ftp", "sftp", "hdfs", "viewfs", "http", "https", "mlflow-artifacts",
					       "r2",  "b2",   "abfss" };
	size_t i;

	for (i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (has_uri_scheme(uri, schemes[i]) && !strncmp(uri + strlen(schemes[i]), "://", 3)) {
			ml_fail(c, ML_INVALID_PARAMETER_VALUE,
				"'%s' cannot use the '%s' scheme: the '%s' scheme addresses a host other than the "
				"tracking server's configured artifact storage, so the server would connect to the "
				"host named in the URI.",
				field, schemes[i], schemes[i]);
			return false;
		}
	return true;
}

/* --- sources owned by a run or a logged model -------------------------------------------------------------------- */

static bool refuse_source_owner(struct call *c, const struct ml_source *s, const char *member)
{
	ml_fail(c, ML_INVALID_PARAMETER_VALUE,
		"Invalid model version source: '%s'. The %s request parameter must identify the resource that contains "
		"the source.", s->uri, member);
	return false;
}

/* Location of the files of the run or the logged model; NULL: neither is given, or it does not exist. */
static const char *find_owner_location(struct call *c, const struct ml_source *s)
{
	struct query_run r;
	struct err err = ERR_INIT;
	struct model m;

	if (*s->model)
		return model_get(c->api->store, s->model, c->arena, &m, &err) ? NULL : ml_model_location(c, &m);
	return *s->run && ml_lookup_run(c, s->run, &r, &err) > 0 ? ml_run_location(c, &r) : NULL;
}

/* Returns true if path is folder or is below it. */
static bool is_path_inside(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	return n && !strncmp(path, folder, n) && (!path[n] || path[n] == '/');
}

static bool check_local_source(struct call *c, const struct ml_source *s)
{
	const char *names = *s->model ? "model_id" : "run_id", *path = local_source_path(s->uri),
		   *folder = find_owner_location(c, s);

	if ((*s->run || *s->model) && !folder)
		return refuse_source_owner(c, s, names);
	folder = folder ? local_source_path(folder) : NULL;
	if (folder && path && is_absolute_source_path(path) && is_path_inside(path, folder))
		return true;
	ml_fail(c, ML_INVALID_PARAMETER_VALUE, OUTSIDE, s->uri, names, names);
	return false;
}

/* The URI without doubled slashes and percent-encoding. */
static const char *normalize_source_uri(struct call *c, const char *uri)
{
	char *text = ml_unquote(c, uri), *to, *from;

	if (!text)
		return "";
	for (to = from = text; *from; from++)
		if (*from != '/' || to == text || to[-1] != '/')
			*to++ = *from;
	if (to > text && to[-1] == '/')
		to--;
	*to = '\0';
	return text;
}

/* Returns true if the first segment of "runs:/<id>/path" or "models:/<id>" is the id. */
static bool has_first_segment(const char *uri, const char *id)
{
	const char *path = strchr(uri, ':') + 1;
	size_t n;

	path += strspn(path, "/");
	n = strcspn(path, "/");
	return *id && n == strlen(id) && !strncmp(path, id, n);
}

/* Checks the owner of a source that this server stores; other URIs are free. */
static bool check_source_owner(struct call *c, const struct ml_source *s)
{
	const char *member = *s->model ? "model_id" : "run_id", *folder;

	if (local_source_path(s->uri) || has_uri_scheme(s->uri, "file"))
		return check_local_source(c, s);
	if (!check_remote_source(c, s->uri))
		return false;
	if (has_uri_scheme(s->uri, "runs"))
		return (!*s->model && has_first_segment(s->uri, s->run)) || refuse_source_owner(c, s, member);
	if (has_uri_scheme(s->uri, "models")) /* a reference to another version was resolved before */
		return has_first_segment(s->uri, s->model) || strchr(s->uri + 8, '/') ||
		       refuse_source_owner(c, s, "model_id");
	if (!has_uri_scheme(s->uri, "mlflow-artifacts"))
		return true;
	folder = find_owner_location(c, s);
	return (folder && is_path_inside(normalize_source_uri(c, s->uri), normalize_source_uri(c, folder))) ||
	       refuse_source_owner(c, s, member);
}

/* --- another version as the source ------------------------------------------------------------------------------ */

/* A URI "models:/<name>/<version, stage or latest>", "models:/<name>@<alias>" or "models:/<id of a logged model>". */
struct model_uri {
	const char *name, *what; /* what NULL: name is an id */
	bool alias;
};

/* Splits the URI of a version. Returns false after failing the call. */
static bool parse_model_uri(struct call *c, const struct ml_source *s, struct model_uri *ret)
{
	const char *path = s->uri + strlen("models:"), *slash, *at;

	if (!strncmp(path, "//", 2) && path[2] && path[2] != '/') {
		ml_fail(c, ML_INVALID_PARAMETER_VALUE,
			"Invalid model version source: '%s'. Registered model sources must use the active model "
			"registry.", s->uri);
		return false;
	}
	if (*path != '/' || path[1] == '/' || !path[1])
		return refuse_source_owner(c, s, "model_id");
	slash = strchr(++path, '/');
	at = slash ? NULL : strrchr(path, '@');
	*ret = (struct model_uri){ path, NULL, at != NULL };
	if (slash || at) {
		ret->what = (slash ? slash : at) + 1;
		ret->name = arena_printf(c->arena, "%.*s", (int)((slash ? slash : at) - path), path);
	}
	if ((slash && !*ret->name) || (ret->what && (!*ret->what || strchr(ret->what, '/'))))
		return refuse_source_owner(c, s, "model_id");
	return true;
}

/* The version that the URI names by an alias, a stage or as the latest; 0 after failing the call. */
static int64_t resolve_version_number(struct call *c, const struct registered_model *m, const struct model_uri *uri)
{
	int64_t found = 0;
	const char *stage;
	size_t i;

	if (uri->alias || !strcasecmp(uri->what, "latest"))
		return ml_find_alias(c, m, uri->what);
	stage = ml_stage(c, uri->what);
	for (i = 0; i < m->latest_count && stage; i++)
		if (!strcmp(m->latest[i].stage, stage))
			found = m->latest[i].version;
	if (stage && !found)
		ml_fail(c, ML_INVALID_PARAMETER_VALUE, "No versions of model with name '%s' and stage '%s' found",
			m->name, uri->what);
	return found;
}

static bool is_prompt_model(const struct registered_model *m)
{
	size_t i;

	for (i = 0; i < m->tag_count; i++)
		if (!strcmp(m->tags[i].key, ML_PROMPT_TAG))
			return !strcasecmp(m->tags[i].value, "true");
	return false;
}

/* Replaces a source that names another version by that version's number, run and location. */
static bool resolve_version_source(struct call *c, struct ml_source *s, const struct model_uri *uri)
{
	struct registered_version v;
	struct registered_model m;
	int64_t number;

	if (!ml_model_name_ok(c, "name", uri->name) || !ml_find_registered(c, uri->name, &m))
		return false;
	if (is_prompt_model(&m)) {
		ml_fail(c, ML_INVALID_PARAMETER_VALUE,
			"Invalid model version source: '%s'. Prompt versions cannot be used as model version sources.",
			s->uri);
		return false;
	}
	if (!uri->alias && !uri->what[strspn(uri->what, "0123456789")])
		number = atoll(uri->what);
	else if (!(number = resolve_version_number(c, &m, uri)))
		return false;
	if (!ml_find_version(c, uri->name, number, &v))
		return false;
	if ((s->run_given && strcmp(s->run, v.run ? v.run : "")) || (s->model_given && *s->model)) {
		ml_fail(c, ML_INVALID_PARAMETER_VALUE,
			"Invalid model version source: '%s'. The run_id and model_id request parameters must match the "
			"referenced model version.", s->uri);
		return false;
	}
	s->uri = arena_printf(c->arena, "models:/%s/%lld", uri->name, (long long)number);
	s->run = v.run ? v.run : "";
	s->location = v.location;
	return true;
}

/* Takes the run and the location of the files from a logged model. */
static bool resolve_model_source(struct call *c, struct ml_source *s, const char *id)
{
	struct model m;

	if (!ml_find_model(c, id, &m))
		return false;
	s->run = *s->run ? s->run : m.source_run;
	s->location = has_uri_scheme(s->uri, "models") ? ml_model_location(c, &m) : s->location;
	return true;
}

static bool check_prompt_source(struct call *c, const struct ml_source *s)
{
	if (!strcmp(s->uri, "dummy-source") || !strcmp(s->uri, "prompt-template"))
		return true;
	ml_fail(c, ML_INVALID_PARAMETER_VALUE,
		"Invalid prompt source: '%s'. Prompt sources must use an MLflow placeholder.", s->uri);
	return false;
}

bool ml_source_follow(struct call *c, struct ml_source *s)
{
	struct model_uri uri = { 0 };
	bool models = has_uri_scheme(s->uri, "models");

	if (!ml_length_ok(c, "source", SOURCE_CHARS, s->uri))
		return false;
	s->location = s->uri;
	if (s->prompt)
		return check_prompt_source(c, s);
	if (!ml_host_ok(c, "source", s->uri) || (models && !parse_model_uri(c, s, &uri)))
		return false;
	if (uri.what && !resolve_version_source(c, s, &uri))
		return false;
	if (!check_source_owner(c, s))
		return false;
	if (models && !uri.what)
		return resolve_model_source(c, s, uri.name);
	return !*s->model || *s->run || resolve_model_source(c, s, s->model);
}

/* --- files ------------------------------------------------------------------------------------------------------ */

const char *ml_source_folder(struct call *c, const char *location)
{
	const char *path = location + sizeof("mlflow-artifacts:") - 1, *slash;
	struct query_run run;

	if (has_uri_scheme(location, "mlflow-artifacts")) {
		if (!strncmp(path, "//", 2))
			path += 2 + strcspn(path + 2, "/");
		return path + strspn(path, "/");
	}
	path = location + 5;
	path += has_uri_scheme(location, "runs") ? strspn(path, "/") : 0;
	slash = has_uri_scheme(location, "runs") ? strchr(path, '/') : NULL;
	if (slash)
		return ml_find_run(c, arena_printf(c->arena, "%.*s", (int)(slash - path), path), &run)
			       ? arena_printf(c->arena, "%s/%s/artifacts%s", run.experiment_id, run.id, slash)
			       : NULL;
	ml_fail(c, ML_INVALID_PARAMETER_VALUE,
		"The files of this version are stored at %s, not on this server: read them there.", location);
	return NULL;
}
