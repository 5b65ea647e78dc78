/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c: searches the variables first, then the profile in the settings files of AWS's tools (AWS SDKs and Tools
 * Reference Guide, "Shared config and credentials files"): sections, "name = value", and indented values below a name
 * without a value. */
#include "tracker/object/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tracker/base/file.h"

#define AWS_PROFILE_FILE_MAX ((size_t)1 << 20)
#define LINE_MAX_BYTES 8192

struct aws_profile_place {
	const char *section; /* "default", "profile research", "services minio" */
	const char *parent;  /* the name above the indented lines; NULL: not indented */
	const char *name;
};

/* Reads the file's text; a missing file is empty. ERR_USAGE if it is unreadable. */
static int load_profile_file(struct buf *ret, const char *path, struct err *err)
{
	struct err failure;
	int rc = file_load(ret, path, &failure);

	if (!rc || errno == ENOENT || errno == ENOTDIR)
		return 0;
	return err_set(err, rc, "%s", failure.text);
}

static char *trim_blanks(char *text)
{
	size_t n = strlen(text);

	while (n && strchr(" \t\r", text[n - 1]))
		text[--n] = '\0';
	return text + strspn(text, " \t");
}

/* "[profile research]", with any number of blanks between words. */
static bool is_section_line(const char *line, const char *section)
{
	size_t first = strcspn(section, " ");

	line += 1 + strspn(line + 1, " \t");
	if (strncmp(line, section, first))
		return false;
	line += first;
	if (section[first]) {
		const char *rest = section + first + 1;

		if (*line != ' ' && *line != '\t')
			return false;
		line += strspn(line, " \t");
		if (strncmp(line, rest, strlen(rest)))
			return false;
		line += strlen(rest);
	}
	line += strspn(line, " \t");
	return *line == ']';
}

/* Parses "name = value"; returns false for another name. */
static bool parse_setting(char *line, const char *name, const char **ret)
{
	char *equals = strchr(line, '=');

	if (!equals)
		return false;
	*equals = '\0';
	if (strcasecmp(trim_blanks(line), name))
		return false;
	*ret = trim_blanks(equals + 1);
	return true;
}

struct profile_walk {
	const struct aws_profile_place *place;
	bool in_section, in_parent; /* in the section; in the parent */
	bool section_found;	    /* the section exists */
};

/* Reads one line; returns true if it has the wanted value. */
static bool scan_profile_line(struct profile_walk *w, char *line, const char **ret)
{
	const struct aws_profile_place *p = w->place;
	bool indented = *line == ' ' || *line == '\t';

	line = trim_blanks(line);
	if (!*line || *line == '#' || *line == ';')
		return false;
	if (*line == '[' && !indented) {
		w->in_section = is_section_line(line, p->section);
		w->section_found |= w->in_section;
		w->in_parent = false;
		return false;
	}
	if (!w->in_section)
		return false;
	if (!p->name)
		return false;
	if (indented)
		return p->parent && w->in_parent && parse_setting(line, p->name, ret);
	if (!p->parent)
		return parse_setting(line, p->name, ret);
	w->in_parent = parse_setting(line, p->parent, ret) && !**ret;
	return false;
}

/* Returns true if a line has the wanted value. */
static bool scan_profile(struct profile_walk *w, const struct buf *text, char ret[AWS_PROFILE_VALUE_BYTES])
{
	const char *at = text->data ? text->data : "", *value;
	char line[LINE_MAX_BYTES];

	while (*at) {
		size_t n = strcspn(at, "\n");

		if (n < sizeof(line)) { /* longer lines are ignored */
			memcpy(line, at, n);
			line[n] = '\0';
			if (scan_profile_line(w, line, &value)) {
				snprintf(ret, AWS_PROFILE_VALUE_BYTES, "%s", value);
				return true;
			}
		}
		at += n + (at[n] == '\n');
	}
	return false;
}

/* Returns false if the text does not define the value; *ret is then unchanged. */
static bool find_profile_value(const struct buf *text, const struct aws_profile_place *p,
			       char ret[AWS_PROFILE_VALUE_BYTES])
{
	struct profile_walk w = { .place = p };

	return scan_profile(&w, text, ret);
}

static bool has_profile_section(const struct buf *text, const char *section)
{
	struct aws_profile_place p = { .section = section };
	struct profile_walk w = { .place = &p };

	scan_profile(&w, text, NULL);
	return w.section_found;
}

#define PATH_BYTES 4096
#define REGION "us-east-1"

const char *settings_env(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static int load_settings_file(struct buf *ret, const char *variable, const char *usual, struct err *err)
{
	const char *path = settings_env(variable), *home = settings_env("HOME");
	char text[PATH_BYTES];

	buf_init(ret, AWS_PROFILE_FILE_MAX);
	if (!path && !home)
		return 0;
	if (path && !strncmp(path, "~/", 2) && home)
		snprintf(text, sizeof(text), "%s%s", home, path + 1);
	else if (path)
		snprintf(text, sizeof(text), "%s", path);
	else
		snprintf(text, sizeof(text), "%s/.aws/%s", home, usual);
	return load_profile_file(ret, text, err);
}

/* In the config file, section names of profiles begin with "profile ", except the default's. */
static void format_config_section(const struct settings *s, char ret[256])
{
	snprintf(ret, 256, "%s%.200s", strcmp(s->profile, "default") ? "profile " : "", s->profile);
}

bool settings_get(const struct settings *s, const char *name, char ret[AWS_PROFILE_VALUE_BYTES])
{
	char section[256];

	format_config_section(s, section);
	return find_profile_value(&s->credentials, &(struct aws_profile_place){ .section = s->profile, .name = name },
				  ret) ||
	       find_profile_value(&s->config, &(struct aws_profile_place){ .section = section, .name = name }, ret);
}

/* Returns true if the profile in AWS_PROFILE exists. */
static bool has_named_profile(const struct settings *s)
{
	char section[256];

	format_config_section(s, section);
	return has_profile_section(&s->credentials, s->profile) || has_profile_section(&s->config, section);
}

int settings_load(struct settings *s, struct err *err)
{
	const char *profile = settings_env("AWS_PROFILE");
	int rc;

	*s = (struct settings){ .profile = profile ? profile : "default" };
	rc = load_settings_file(&s->credentials, "AWS_SHARED_CREDENTIALS_FILE", "credentials", err);
	if (!rc)
		rc = load_settings_file(&s->config, "AWS_CONFIG_FILE", "config", err);
	if (!rc && profile && !has_named_profile(s))
		rc = err_set(err, ERR_USAGE,
			     "AWS_PROFILE=%.100s: no such profile in ~/.aws/credentials or ~/.aws/config", profile);
	return rc;
}

void settings_done(struct settings *s)
{
	if (s->credentials.data)
		explicit_bzero(s->credentials.data, s->credentials.len);
	if (s->config.data)
		explicit_bzero(s->config.data, s->config.len);
	buf_done(&s->credentials);
	buf_done(&s->config);
}

static const char *read_first_env(const char *one, const char *other)
{
	return settings_env(one) ? settings_env(one) : settings_env(other);
}

/* Finds the endpoint: variables, then the profile's services section, then the profile itself. */
static bool find_endpoint(const struct settings *s, char ret[AWS_PROFILE_VALUE_BYTES])
{
	const char *ignored = settings_env("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"),
		   *variable = read_first_env("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
	char services[AWS_PROFILE_VALUE_BYTES], section[256];

	if (ignored && !strcasecmp(ignored, "true"))
		return false;
	if (variable) {
		snprintf(ret, AWS_PROFILE_VALUE_BYTES, "%s", variable);
		return true;
	}
	if (settings_get(s, "services", services)) {
		snprintf(section, sizeof(section), "services %.200s", services);
		if (find_profile_value(&s->config, &(struct aws_profile_place){ section, "s3", "endpoint_url" }, ret))
			return true;
	}
	return settings_get(s, "endpoint_url", ret);
}

/* Names that can be a label in front of AWS's host, covered by its wildcard certificate. */
static bool is_host_label(const char *bucket)
{
	return bucket[strspn(bucket, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

int settings_place_at(struct settings_place *p, const char *setting, const char *endpoint, const char *bucket,
		      struct err *err)
{
	size_t n = strlen(endpoint), scheme;
	const char *host = strstr(endpoint, "://");

	if ((strncmp(endpoint, "http://", 7) && strncmp(endpoint, "https://", 8)) || n >= sizeof(p->url) ||
	    endpoint[strcspn(endpoint, "@?# \t\r\n")])
		return err_set(err, ERR_USAGE, "%s: \"%.*s\" is not an http:// or https:// URL of a server", setting,
			       strchr(endpoint, '@') ? 0 : (int)strcspn(endpoint, "?#"), endpoint);
	scheme = (size_t)(host + 3 - endpoint);
	while (n > scheme && endpoint[n - 1] == '/')
		n--;
	snprintf(p->host, sizeof(p->host), "%.*s", (int)strcspn(endpoint + scheme, "/"), endpoint + scheme);
	if (scheme + strlen(p->host) != n)
		return err_set(err, ERR_USAGE, "%s: \"%.200s\": a path is not allowed", setting, endpoint);
	snprintf(p->url, sizeof(p->url), "%.*s", (int)n, endpoint);
	snprintf(p->path, sizeof(p->path), "/%s", bucket);
	return 0;
}

static void place_at_amazon(struct settings_place *p, const char *bucket)
{
	bool front = is_host_label(bucket);

	snprintf(p->host, sizeof(p->host), "%s%ss3.%s.amazonaws.com%s", front ? bucket : "", front ? "." : "",
		 p->region, strncmp(p->region, "cn-", 3) ? "" : ".cn");
	snprintf(p->url, sizeof(p->url), "https://%.500s", p->host);
	snprintf(p->path, sizeof(p->path), "%s%s", front ? "" : "/", front ? "" : bucket);
}

int settings_place(const struct settings *s, const char *bucket, const char *region, struct settings_place *ret,
		   struct err *err)
{
	const char *variable = region ? region : read_first_env("AWS_REGION", "AWS_DEFAULT_REGION");
	char value[AWS_PROFILE_VALUE_BYTES] = REGION;

	*ret = (struct settings_place){ .region = "" };
	if (!variable)
		settings_get(s, "region", value);
	snprintf(ret->region, sizeof(ret->region), "%.63s", variable ? variable : value);
	if (ret->region[strspn(ret->region, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")])
		return err_set(err, ERR_USAGE, "AWS_REGION (or region): \"%.60s\" is not the name of a region",
			       ret->region);
	if (find_endpoint(s, value))
		return settings_place_at(ret, "AWS_ENDPOINT_URL_S3 (or endpoint_url)", value, bucket, err);
	place_at_amazon(ret, bucket);
	return 0;
}
