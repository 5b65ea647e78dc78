/* settings.c: searches the variables first, then the profile. */
#include "tracker/object/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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
	return aws_profile_load(ret, text, err);
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
	return aws_profile_find(&s->credentials, &(struct aws_profile_place){ .section = s->profile, .name = name },
				ret) ||
	       aws_profile_find(&s->config, &(struct aws_profile_place){ .section = section, .name = name }, ret);
}

/* Returns true if the profile in AWS_PROFILE exists. */
static bool has_named_profile(const struct settings *s)
{
	char section[256];

	format_config_section(s, section);
	return aws_profile_has(&s->credentials, s->profile) || aws_profile_has(&s->config, section);
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
			     "AWS_PROFILE=%.100s: no such profile in ~/.aws/credentials or ~/.aws/config",
			     profile);
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
		if (aws_profile_find(&s->config, &(struct aws_profile_place){ section, "s3", "endpoint_url" }, ret))
			return true;
	}
	return settings_get(s, "endpoint_url", ret);
}

/* Names that can be a label in front of AWS's host, covered by its wildcard certificate. */
static bool is_host_label(const char *bucket)
{
	return bucket[strspn(bucket, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

/* Addresses the bucket as a path of the endpoint, which must be scheme://host[:port] alone. */
static int place_at_endpoint(struct settings_place *p, const char *endpoint, const char *bucket, struct err *err)
{
	size_t n = strlen(endpoint), scheme;
	const char *host = strstr(endpoint, "://");

	if ((strncmp(endpoint, "http://", 7) && strncmp(endpoint, "https://", 8)) || n >= sizeof(p->url) ||
	    endpoint[strcspn(endpoint, "@?# \t\r\n")])
		return err_set(
			err, ERR_USAGE,
			"AWS_ENDPOINT_URL_S3 (or endpoint_url): \"%.*s\" is not an http:// or https:// address of a "
			"server",
			strchr(endpoint, '@') ? 0 : (int)strcspn(endpoint, "?#"), endpoint);
	scheme = (size_t)(host + 3 - endpoint);
	while (n > scheme && endpoint[n - 1] == '/')
		n--;
	snprintf(p->host, sizeof(p->host), "%.*s", (int)strcspn(endpoint + scheme, "/"), endpoint + scheme);
	if (scheme + strlen(p->host) != n)
		return err_set(err, ERR_USAGE,
			       "AWS_ENDPOINT_URL_S3 (or endpoint_url): \"%.200s\": a path is not allowed", endpoint);
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
		return place_at_endpoint(ret, value, bucket, err);
	place_at_amazon(ret, bucket);
	return 0;
}
