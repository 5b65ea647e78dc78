/* SPDX-License-Identifier: Apache-2.0 */
/* identity.c: searches for keys in the order of AWS's tools: variables, the profile, the role of the machine. */
#include "tracker/object/settings.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tracker/base/file.h"
#include "tracker/base/text.h"

static int copy_credential(char *to, size_t room, const char *value, const char *what, struct err *err)
{
	if (strlen(value) >= room || strpbrk(value, "\r\n"))
		return err_set(err, ERR_USAGE, "%s is too long or has a line break", what);
	memcpy(to, value, strlen(value) + 1);
	return 0;
}

int identity_copy(struct identity *ret, const char *id, const char *secret, const char *token, struct err *err)
{
	int rc = copy_credential(ret->id, sizeof(ret->id), id, "the access key id", err);

	if (!rc)
		rc = copy_credential(ret->secret, sizeof(ret->secret), secret, "the secret access key", err);
	if (!rc)
		rc = copy_credential(ret->token, sizeof(ret->token), token ? token : "", "the session token", err);
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
				       "run eval \"$(aws configure export-credentials --format env)\"",
				       s->profile, way[i]);
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
	rc = identity_copy(ret, id, secret, token, err);
	explicit_bzero(secret, sizeof(secret));
	return rc;
}

/* ---- keys of a container (ECS, EKS: AWS_CONTAINER_CREDENTIALS_…) or an instance (EC2: IMDS, version 2) ----
 * Both are small JSON documents from a link-local address. */

#define ANSWER_MAX ((size_t)64 << 10)
#define CONTAINERS "http://169.254.170.2"
#define INSTANCES "http://169.254.169.254"
#define ROLES "/latest/meta-data/iam/security-credentials/"
#define LINE_BYTES (AWS_PROFILE_VALUE_BYTES + 64)
#define TOKEN_TTL "X-aws-ec2-metadata-token-ttl-seconds: 21600"

/* Returns the answer's status and its text, or 0 without an answer. method NULL: GET. */
static long request_metadata(const struct curlso *so, const char *method, const char *url, const char *header,
			     struct buf *ret)
{
	struct curl_request r = { .url = url, .method = method, .direct = true };

	auth_request_send(so, header, &r, ret);
	return r.answer.status;
}

/* {"AccessKeyId", "SecretAccessKey", "Token", "Expiration": "2026-11-21T18:00:00Z"} */
static int parse_keys(struct identity *ret, const struct buf *text, const char *from, struct err *err)
{
	json_t *root = json_loads(text->data, 0, NULL);
	const char *id = json_string_value(json_object_get(root, "AccessKeyId")),
		   *secret = json_string_value(json_object_get(root, "SecretAccessKey")),
		   *token = json_string_value(json_object_get(root, "Token")),
		   *until = json_string_value(json_object_get(root, "Expiration"));
	double until_s;
	int rc = 0;

	if (!id || !secret || strlen(id) >= sizeof(ret->id) || strlen(secret) >= sizeof(ret->secret) ||
	    (token && strlen(token) >= sizeof(ret->token))) {
		rc = err_set(err, ERR_USAGE, "%s: the answer has no keys", from);
	} else {
		snprintf(ret->id, sizeof(ret->id), "%s", id);
		snprintf(ret->secret, sizeof(ret->secret), "%s", secret);
		snprintf(ret->token, sizeof(ret->token), "%s", token ? token : "");
		ret->until_s = until && text_iso_time(until, &until_s) ? until_s : 0;
		ret->given = true;
	}
	json_decref(root);
	return rc;
}

/* The token that authorizes the container, as a header line. */
static bool load_container_token(char ret[LINE_BYTES])
{
	const char *path = settings_env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
		   *token = settings_env("AWS_CONTAINER_AUTHORIZATION_TOKEN");
	struct buf text;

	buf_init(&text, AWS_PROFILE_VALUE_BYTES);
	if (path && !file_load(&text, path, NULL) && text.len) {
		text.data[strcspn(text.data, "\r\n")] = '\0';
		token = text.data;
	}
	if (token)
		snprintf(ret, LINE_BYTES, "Authorization: %s", token);
	buf_done(&text);
	return token != NULL;
}

static int load_container_keys(struct identity *ret, const struct curlso *so, struct buf *text, struct err *err)
{
	const char *relative = settings_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
		   *full = settings_env("AWS_CONTAINER_CREDENTIALS_FULL_URI");
	char url[AWS_PROFILE_VALUE_BYTES], header[LINE_BYTES];
	bool known = load_container_token(header);
	long status;

	if (!relative && !full)
		return ERR_NOENT;
	snprintf(url, sizeof(url), "%s%s", relative ? CONTAINERS : "", relative ? relative : full);
	status = request_metadata(so, NULL, url, known ? header : NULL, text);
	if (status != 200)
		return err_set(err, ERR_USAGE,
			       "AWS_CONTAINER_CREDENTIALS_…_URI: the container's address did not return keys");
	return parse_keys(ret, text, "AWS_CONTAINER_CREDENTIALS_…_URI", err);
}

/* Requests a session token, then the name of the role, then its keys. ERR_NOENT: no instance, or no role. */
static int load_instance_keys(struct identity *ret, const struct curlso *so, struct buf *text, struct err *err)
{
	const char *off = settings_env("AWS_EC2_METADATA_DISABLED"),
		   *base = settings_env("AWS_EC2_METADATA_SERVICE_ENDPOINT");
	char url[AWS_PROFILE_VALUE_BYTES], header[LINE_BYTES];
	int n;

	if (off && !strcasecmp(off, "true"))
		return ERR_NOENT;
	base = base ? base : INSTANCES;
	n = (int)strlen(base) - (base[strlen(base) - 1] == '/');
	snprintf(url, sizeof(url), "%.*s/latest/api/token", n, base);
	if (request_metadata(so, "PUT", url, TOKEN_TTL, text) != 200)
		return ERR_NOENT;
	snprintf(header, sizeof(header), "X-aws-ec2-metadata-token: %s", text->data);
	snprintf(url, sizeof(url), "%.*s" ROLES, n, base);
	if (request_metadata(so, NULL, url, header, text) != 200)
		return ERR_NOENT;
	text->data[strcspn(text->data, "\r\n")] = '\0';
	snprintf(url, sizeof(url), "%.*s" ROLES "%.200s", n, base, text->data);
	if (request_metadata(so, NULL, url, header, text) != 200)
		return err_set(err, ERR_USAGE, "the instance has a role, but returned no keys for it");
	return parse_keys(ret, text, "the instance's role", err);
}

/* Requests the keys of the container or instance. ERR_NOENT: no role. */
static int find_role_keys(struct identity *ret, const struct curlso *so, struct err *err)
{
	struct buf text;
	int rc;

	buf_init(&text, ANSWER_MAX);
	rc = load_container_keys(ret, so, &text, err);
	if (rc == ERR_NOENT)
		rc = load_instance_keys(ret, so, &text, err);
	buf_done(&text);
	return rc;
}

/* ---- the order of the sources ---- */

int identity_find(struct identity *ret, const struct settings *s, const struct curlso *so, struct err *err)
{
	const char *id = settings_env("AWS_ACCESS_KEY_ID"), *secret = settings_env("AWS_SECRET_ACCESS_KEY");
	int rc;

	*ret = (struct identity){ .kind = IDENTITY_KEYS };
	if (id && secret)
		return identity_copy(ret, id, secret, settings_env("AWS_SESSION_TOKEN"), err);
	if (id || secret)
		return err_set(err, ERR_USAGE,
			       "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set together: %s is not set",
			       id ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID");
	rc = load_profile_keys(ret, s, err);
	if (rc == ERR_NOENT)
		rc = find_role_keys(ret, so, err);
	if (rc != ERR_NOENT)
		return rc;
	return err_set(err, ERR_USAGE,
		       "no keys for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write ~/.aws/credentials "
		       "(profile %.100s), or give the machine a role", s->profile);
}
