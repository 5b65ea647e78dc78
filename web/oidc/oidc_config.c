/* SPDX-License-Identifier: Apache-2.0 */
/* oidc_config.c: reads the file of providers. Every member is known and has its type, so that a mistyped name is no
 * silent default. */
#include "web/oidc/oidc_inside.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tracker/base/file.h"
#include "tracker/mem/mem.h"

#define FILE_BYTES_MAX (1u << 20)
#define PROVIDERS_MAX 16

struct member {
	const char *name;
	const char **into; /* NULL: no text */
	bool required;
};

/* Fills the texts of an object; refuses what no member names. where: of the object, for messages. */
static int read_members(json_t *object, const struct member *members, const char *where, struct err *err)
{
	const struct member *m;
	const char *key;
	json_t *value;

	if (!json_is_object(object))
		return err_set(err, ERR_USAGE, "%s: expected an object {…}", where);
	json_object_foreach(object, key, value) {
		for (m = members; m->name && strcmp(m->name, key); m++)
			;
		if (!m->name)
			return err_set(err, ERR_USAGE, "%s: unknown member \"%.60s\"", where, key);
		if (m->into && (!json_is_string(value) || !json_string_length(value)))
			return err_set(err, ERR_USAGE, "%s: \"%s\": expected a text", where, key);
		if (m->into)
			*m->into = json_string_value(value);
	}
	for (m = members; m->name; m++)
		if (m->required && !json_object_get(object, m->name))
			return err_set(err, ERR_USAGE, "%s: \"%s\" is missing", where, m->name);
	return 0;
}

static bool names_this_machine(const char *host)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncasecmp(host, names[i], strlen(names[i])) && strchr(":/", host[strlen(names[i])]))
			return true;
	return false;
}

/* Returns the host of http:// or https://, NULL: not such an address. */
static const char *find_host(const char *url)
{
	const char *host = !url				  ? NULL
			   : !strncmp(url, "http://", 7)  ? url + 7
			   : !strncmp(url, "https://", 8) ? url + 8
							  : NULL;

	return host && !strchr("/?:", *host) && !strpbrk(url, " \t\r\n\"'<>\\#") ? host : NULL;
}

bool oidc_is_safe_address(const char *url)
{
	const char *host = find_host(url);

	return host && (host == url + 8 || names_this_machine(host));
}

/* A name is a segment of an address, and begins the names of its persons. */
static bool is_provider_name(const char *name)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";

	return strlen(name) <= 32 && strspn(name, plain) == strlen(name);
}

/* A grant is a scope in all experiments, or a text of grants.h. */
static int check_grants(const struct provider *p, const char *where, struct err *err)
{
	struct arena *a = arena_new();
	enum token_scope scope;
	struct grants list;
	const char *group;
	json_t *grant;
	int rc = 0;

	if (!json_is_object(p->grants) || !json_object_size(p->grants))
		rc = err_set(err, ERR_USAGE,
			     "%s: \"grants\": expected {\"GROUP\": \"read\", …}; \"*\": all who sign in there", where);
	json_object_foreach(p->grants, group, grant) {
		if (!rc && !json_is_string(grant))
			rc = err_set(err, ERR_USAGE, "%s: \"grants\": \"%.60s\": expected a text", where, group);
		if (!rc && !token_scope_read(json_string_value(grant), &scope) &&
		    grants_parse(&list, a, json_string_value(grant), err))
			rc = err_prefix(err,
					"%s: \"grants\": \"%.60s\": expected read, write, admin or EXPERIMENT=LEVEL,…",
					where, group);
	}
	arena_free(a);
	return rc;
}

/* root: the address of this server, with a slash at the end. */
static int read_provider(struct provider *p, json_t *object, const char *root, const char *where, struct err *err)
{
	const char *secret_file = NULL;
	const struct member members[] = {
		{ "name", &p->name, true },
		{ "label", &p->label, false },
		{ "issuer", &p->issuer, true },
		{ "client_id", &p->client_id, true },
		{ "client_secret_file", &secret_file, false },
		{ "scopes", &p->scopes, false },
		{ "groups_claim", &p->groups_claim, false },
		{ "name_claim", &p->name_claim, false },
		{ "grants", NULL, true },
		{ NULL, NULL, false },
	};
	int rc;

	p->scopes = "openid profile email";
	p->groups_claim = "groups";
	rc = read_members(object, members, where, err);
	if (rc)
		return rc;
	p->label = p->label ? p->label : p->name;
	p->grants = json_object_get(object, "grants");
	if (!is_provider_name(p->name))
		return err_set(err, ERR_USAGE, "%s: \"name\": expected 1 to 32 of a-z, 0-9, - and _", where);
	if (!oidc_is_safe_address(p->issuer) || strchr(p->issuer, '?'))
		return err_set(err, ERR_USAGE,
			       "%s: \"issuer\": expected https://HOST/PATH (http:// only for a provider on "
			       "this machine)",
			       where);
	if (snprintf(p->redirect_uri, sizeof(p->redirect_uri), "%slogin/%s/callback", root, p->name) >=
	    (int)sizeof(p->redirect_uri))
		return err_set(err, ERR_USAGE, "%s: \"url\" is too long", where);
	rc = check_grants(p, where, err);
	if (!rc && secret_file)
		rc = token_chosen_file(&(struct token_chosen){ p->secret, sizeof(p->secret), "client_secret_file" },
				       secret_file, err);
	return rc;
}

static int read_providers(struct oidc *o, json_t *list, const char *root, const char *path, struct err *err)
{
	int rc = 0;

	if (!json_is_array(list) || !json_array_size(list) || json_array_size(list) > PROVIDERS_MAX)
		return err_set(err, ERR_USAGE, "%s: \"providers\": expected a list of 1 to %d", path, PROVIDERS_MAX);
	o->count = json_array_size(list);
	o->providers = mem_array(o->count, sizeof(*o->providers));
	for (size_t i = 0; !rc && i < o->count; i++) {
		char where[300];

		snprintf(where, sizeof(where), "%.250s: providers[%zu]", path, i);
		rc = read_provider(&o->providers[i], json_array_get(list, i), root, where, err);
		for (size_t k = 0; !rc && k < i; k++)
			if (!strcmp(o->providers[k].name, o->providers[i].name))
				rc = err_set(err, ERR_USAGE, "%s: \"name\": another provider is named %s", where,
					     o->providers[i].name);
	}
	return rc;
}

int oidc_config_read(struct oidc *o, const char *path, const char *address, struct err *err)
{
	const char *url = NULL;
	const struct member members[] = { { "url", &url, false }, { "providers", NULL, true }, { NULL, NULL, false } };
	char root[512];
	json_error_t e;
	struct buf text;
	int rc;

	buf_init(&text, FILE_BYTES_MAX);
	rc = file_load(&text, path, err);
	if (!rc) {
		o->root = json_loadb(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES, &e);
		rc = o->root ? read_members(o->root, members, path, err)
			     : err_set(err, ERR_USAGE, "%s: line %d: %s", path, e.line, e.text);
	}
	buf_done(&text);
	if (rc)
		return rc;
	url = url ? url : address;
	if (!url)
		return err_set(err, ERR_USAGE,
			       "%s: \"url\" is missing: expected the address of this server in browsers, such "
			       "as https://HOST/PATH/",
			       path);
	if (!find_host(url) || strchr(url, '?') ||
	    snprintf(root, sizeof(root), "%s%s", url, url[strlen(url) - 1] == '/' ? "" : "/") >= (int)sizeof(root))
		return err_set(err, ERR_USAGE, "%s: \"url\": expected https://HOST/PATH/ or http://HOST/PATH/", path);
	return read_providers(o, json_object_get(o->root, "providers"), root, path, err);
}
