/* identity.c: searches for keys in the order of AWS's tools. */
#include "tracker/object/identity.h"

#include <stdio.h>
#include <string.h>

static int copy_credential(char *to, size_t room, const char *value, const char *what, struct err *err)
{
	if (strlen(value) >= room || strpbrk(value, "\r\n"))
		return err_set(err, ERR_USAGE, "%s is too long or has a line break", what);
	memcpy(to, value, strlen(value) + 1);
	return 0;
}

static int copy_credentials(struct identity *ret, const char *id, const char *secret, const char *token,
			    struct err *err)
{
	int rc = copy_credential(ret->id, sizeof(ret->id), id, "AWS's access key id", err);

	if (!rc)
		rc = copy_credential(ret->secret, sizeof(ret->secret), secret, "AWS's secret access key", err);
	if (!rc)
		rc = copy_credential(ret->token, sizeof(ret->token), token ? token : "", "AWS's session token", err);
	return rc;
}

/* Sources of keys that only AWS's own tools support. */
static int refuse_other_sources(const struct settings *s, struct err *err)
{
	static const char *const way[] = { "credential_process", "sso_session", "sso_start_url", "role_arn" };
	char value[AWS_PROFILE_VALUE_BYTES];

	for (size_t i = 0; i < sizeof(way) / sizeof(*way); i++)
		if (settings_get(s, way[i], value))
			return err_set(err, ERR_USAGE,
				       "AWS profile %.100s gets its keys from %s, which is not supported: "
				       "run eval \"$(aws configure export-credentials --format env)\"", s->profile,
				       way[i]);
	if (settings_env("AWS_WEB_IDENTITY_TOKEN_FILE"))
		return err_set(err, ERR_USAGE,
			       "AWS_WEB_IDENTITY_TOKEN_FILE is not supported: "
			       "run eval \"$(aws configure export-credentials --format env)\"");
	return 0;
}

static int load_profile_keys(struct identity *ret, const struct settings *s, struct err *err)
{
	char id[AWS_PROFILE_VALUE_BYTES], secret[AWS_PROFILE_VALUE_BYTES], token[AWS_PROFILE_VALUE_BYTES] = "";
	int rc;

	if (!settings_get(s, "aws_access_key_id", id)) {
		rc = refuse_other_sources(s, err);
		return rc ? rc : ERR_NOENT;
	}
	if (!settings_get(s, "aws_secret_access_key", secret))
		return err_set(err, ERR_USAGE, "AWS profile %.100s has aws_access_key_id, but no aws_secret_access_key",
			       s->profile);
	settings_get(s, "aws_session_token", token);
	rc = copy_credentials(ret, id, secret, token, err);
	explicit_bzero(secret, sizeof(secret));
	return rc;
}

int identity_find(struct identity *ret, const struct settings *s, const struct curlso *so, struct err *err)
{
	const char *id = settings_env("AWS_ACCESS_KEY_ID"), *secret = settings_env("AWS_SECRET_ACCESS_KEY");
	int rc;

	*ret = (struct identity){ .id = "" };
	if (id && secret)
		return copy_credentials(ret, id, secret, settings_env("AWS_SESSION_TOKEN"), err);
	if (id || secret)
		return err_set(err, ERR_USAGE,
			       "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set together: %s is not set",
			       id ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID");
	rc = load_profile_keys(ret, s, err);
	if (rc == ERR_NOENT)
		rc = identity_role(ret, so, err);
	if (rc != ERR_NOENT)
		return rc;
	return err_set(err, ERR_USAGE,
		       "no keys for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write ~/.aws/credentials "
		       "(profile %.100s), or give the machine a role", s->profile);
}
