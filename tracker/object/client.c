/* SPDX-License-Identifier: Apache-2.0 */
/* client.c: address, credentials and their renewal, signatures. */
#include "tracker/object/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/object/sign.h"

#define TIMEOUT_S 60.0
#define RENEW_S 225.0 /* before temporary keys expire; Google's metadata server has no newer token earlier */
#define RENEW_AGAIN_S 10.0
#define LINE_BYTES (AWS_PROFILE_VALUE_BYTES + 64)
#define SIGNED_HEADERS 4
#define RENEW_MOST 3 /* keys for one request */

const char *object_scheme(const char *address)
{
	return !strncmp(address, OBJECT_S3, 5) ? OBJECT_S3 : !strncmp(address, OBJECT_GS, 5) ? OBJECT_GS : NULL;
}

bool object_is_address(const char *address)
{
	return object_scheme(address) != NULL;
}

int object_split(const char *address, char ret_bucket[OBJECT_BUCKET_BYTES], const char **ret_key, struct err *err)
{
	const char *scheme = object_scheme(address), *bucket = address + strlen(OBJECT_S3);
	size_t n = strcspn(bucket, "/");

	if (!n || n >= OBJECT_BUCKET_BYTES || strcspn(bucket, "@?#:% \t") < n)
		return err_set(err, ERR_USAGE, "%.300s%s: expected %sBUCKET/KEY",
			       strchr(bucket, '@') ? scheme : address, strchr(bucket, '@') ? "…" : "", scheme);
	if (strlen(bucket) > n + 1 + OBJECT_KEY_MAX)
		return err_set(err, ERR_USAGE, "%.200s…: a key has at most %d bytes", address, OBJECT_KEY_MAX);
	memcpy(ret_bucket, bucket, n);
	ret_bucket[n] = '\0';
	*ret_key = bucket + n + (bucket[n] == '/');
	return 0;
}

/* Loads place and keys for S3. */
static int load_s3_identity(struct object_client *c, const char *region, struct settings_place *place,
			    struct identity *ret, struct err *err)
{
	struct settings s;
	int rc = settings_load(&s, err);

	if (!rc)
		rc = settings_place(&s, c->bucket, region, place, err);
	if (!rc)
		rc = identity_find(ret, &s, &c->so, err);
	settings_done(&s);
	return rc;
}

static int load_google_identity(struct object_client *c, struct settings_place *place, struct identity *ret,
				struct err *err)
{
	int rc = google_place(c->bucket, place, err);

	if (!rc && !c->google)
		rc = google_auth_open(&c->google, err);
	if (!rc)
		rc = google_auth_identity(c->google, &c->so, ret, err);
	if (rc)
		err_prefix(err, "%s%s", c->scheme, c->bucket);
	return rc;
}

/* Loads address and credentials; keeps the old ones after a failure. `region` NULL: the region is loaded too. */
static int load_identity(struct object_client *c, const char *region, struct err *err)
{
	const double now = clock_wall_s();
	struct settings_place place;
	struct identity fresh;
	double left;
	int rc = strcmp(c->scheme, OBJECT_GS) ? load_s3_identity(c, region, &place, &fresh, err)
					      : load_google_identity(c, &place, &fresh, err);

	if (!rc) {
		left = fresh.until_s - now;
		c->place = place;
		c->identity = fresh;
		c->number++;
		c->stale = false;
		c->renew_s = fresh.until_s > 0 ? fresh.until_s - (left / 2 < RENEW_S ? left / 2 : RENEW_S) : 0;
	}
	explicit_bzero(&fresh, sizeof(fresh));
	return rc;
}

/* Loads new credentials if the old ones were refused or expire soon. While they are valid, a failure can wait. The
 * caller holds the lock. */
static int renew_identity(struct object_client *c, struct err *err)
{
	const double now = clock_wall_s();
	char region[sizeof(c->place.region)];
	int rc;

	if (!c->stale && !(c->renew_s > 0 && now > c->renew_s))
		return 0;
	memcpy(region, c->place.region, sizeof(region));
	rc = load_identity(c, region, err);
	if (!rc || c->stale || now > c->identity.until_s - 1) {
		if (!rc && c->renew_s > 0 && clock_wall_s() > c->renew_s) /* the same token again */
			c->renew_s = clock_wall_s() + RENEW_AGAIN_S;
		return rc;
	}
	c->renew_s = now + RENEW_AGAIN_S;
	return 0;
}

int object_open(struct object_client **ret, const char *bucket, const struct object_opts *o, struct err *err)
{
	struct object_client *c = calloc(1, sizeof(*c));
	int rc = c ? curlso_load(&c->so, err) : err_nomem(err, NULL);

	if (!rc)
		rc = answer_prepare(err);
	if (rc) {
		free(c);
		return rc;
	}
	c->o = *o;
	c->scheme = o->scheme ? o->scheme : OBJECT_S3;
	c->o.timeout_s = o->timeout_s > 0 ? o->timeout_s : TIMEOUT_S;
	snprintf(c->bucket, sizeof(c->bucket), "%s", bucket);
	pthread_mutex_init(&c->lock, NULL);
	rc = load_identity(c, NULL, err);
	if (rc) {
		object_close(c);
		return rc;
	}
	*ret = c;
	return 0;
}

void object_close(struct object_client *c)
{
	if (!c)
		return;
	for (int i = 0; i < c->n_idle; i++)
		c->so.easy_cleanup(c->idle[i]);
	pthread_mutex_destroy(&c->lock);
	google_auth_close(c->google);
	explicit_bzero(&c->identity, sizeof(c->identity));
	free(c);
}

void object_url(struct object_client *c, char ret[OBJECT_URL_BYTES])
{
	_Static_assert(sizeof(c->place.url) + sizeof(c->place.path) <= OBJECT_URL_BYTES, "space for both");
	pthread_mutex_lock(&c->lock);
	snprintf(ret, OBJECT_URL_BYTES, "%s%s", c->place.url, c->place.path);
	pthread_mutex_unlock(&c->lock);
}

const char *client_scheme(const struct object_client *c)
{
	return c->scheme;
}

int client_nomem(const struct object_client *c, const char *key, struct err *err)
{
	return err_set(err, ERR_NOMEM, "out of memory: %s%s/%.300s", c->scheme, c->bucket, key);
}

/* ---- signing ---- */

/* Adds the signature of a request by keys. path and query: encoded. */
static int add_signature(struct object_client *c, const struct object_ask *a, const struct buf *path,
			 const struct buf *query, struct object_signed *ret)
{
	char date[SIGN_DATE_BYTES];
	const char *payload = a->payload ? a->payload : SIGN_EMPTY;
	const int n = SIGNED_HEADERS - !c->identity.token[0];
	struct sign_header header[SIGNED_HEADERS] = { { "host", c->place.host },
						      { "x-amz-content-sha256", payload },
						      { "x-amz-date", date },
						      { "x-amz-security-token", c->identity.token } };
	struct sign_key key = { c->identity.id, c->identity.secret, c->place.region };
	struct buf signature;
	bool failed;

	buf_init(&signature, LINE_BYTES);
	sign_date((time_t)clock_wall_s(), date);
	sign_v4(&(struct sign_request){ .method = a->method,
					.path = path->data ? path->data : "",
					.query = query->data ? query->data : "",
					.header = header,
					.n_headers = n,
					.payload = payload,
					.date = date },
		&key, &signature);
	failed = buf_failed(&signature);
	if (!failed)
		failed = !curl_add_header(&c->so, &ret->headers, "Authorization: %s", signature.data);
	for (int i = 1; i < n && !failed; i++)
		failed = !curl_add_header(&c->so, &ret->headers, "%s: %s", header[i].name, header[i].value);
	buf_done(&signature);
	return failed ? ERR_NOMEM : 0;
}

/* Adds the credentials to a request; the caller holds the lock. */
static int sign_object_request(struct object_client *c, const struct object_ask *a, struct object_signed *ret,
			       struct err *err)
{
	struct buf path, query, url;
	int rc = 0;

	buf_init(&path, 4 * OBJECT_KEY_MAX);
	buf_init(&query, CLIENT_TEXT_MAX);
	buf_init(&url, CLIENT_TEXT_MAX);
	buf_addf(&path, "%s%s", c->place.path, *a->key || !c->place.path[0] ? "/" : "");
	uri_add_path(&path, a->key);
	buf_adds(&query, "");
	uri_add_query(&query, a->query, a->n_query);
	buf_addf(&url, "%s%s%s%s", c->place.url, path.data ? path.data : "", a->n_query ? "?" : "",
		 query.data ? query.data : "");
	*ret = (struct object_signed){ .ca = c->google ? NULL : settings_env("AWS_CA_BUNDLE"), .identity = c->number };
	if (buf_failed(&path) || buf_failed(&query) || buf_failed(&url))
		rc = ERR_NOMEM;
	else if (c->identity.kind == IDENTITY_KEYS)
		rc = add_signature(c, a, &path, &query, ret);
	else if (c->identity.kind == IDENTITY_BEARER &&
		 !curl_add_header(&c->so, &ret->headers, "Authorization: Bearer %s", c->identity.token))
		rc = ERR_NOMEM;
	if (rc) {
		c->so.slist_free_all(ret->headers);
		rc = client_nomem(c, a->key, err);
	} else {
		ret->url = buf_take(&url, NULL);
	}
	buf_done(&path);
	buf_done(&query);
	buf_done(&url);
	return rc;
}

int object_sign(struct object_client *c, const struct object_ask *a, struct object_signed *ret, struct err *err)
{
	int rc;

	pthread_mutex_lock(&c->lock);
	rc = renew_identity(c, err);
	if (!rc)
		rc = sign_object_request(c, a, ret, err);
	pthread_mutex_unlock(&c->lock);
	return rc;
}

void object_signed_done(struct object_client *c, struct object_signed *s)
{
	free(s->url);
	c->so.slist_free_all(s->headers);
	*s = (struct object_signed){ .url = NULL };
}

/* Returns true if the request's token or temporary keys are no longer valid, and others can be requested. */
static bool has_expired(const struct object_client *c, const struct object_refusal *r)
{
	if (!c->identity.given)
		return false;
	return c->google ? r->status == 401 && !r->renewed
			 : !strcmp(r->code, "ExpiredToken") && r->renewed < RENEW_MOST;
}

bool object_learn(struct object_client *c, const struct object_refusal *r)
{
	bool again = false;

	pthread_mutex_lock(&c->lock);
	if (r->region[0] && strcmp(r->region, c->place.region) &&
	    (r->status == 301 || r->status == 307 || r->status == 400 || r->status == 403)) {
		again = !load_identity(c, r->region, NULL);
	} else if (has_expired(c, r)) {
		again = true;
		c->stale |= r->identity == c->number; /* else there are newer ones */
	}
	pthread_mutex_unlock(&c->lock);
	return again;
}

void object_advise(struct object_client *c, const struct object_refusal *r, char *text, size_t room)
{
	const size_t n = strlen(text);
	const bool denied = r->status == 401 || r->status == 403;

	if (n + 1 >= room)
		return;
	pthread_mutex_lock(&c->lock);
	if (!strcmp(r->code, "RequestTimeTooSkewed"))
		snprintf(text + n, room - n, ": set this machine's clock");
	else if (c->google && denied && c->identity.kind == IDENTITY_ANONYMOUS)
		snprintf(text + n, room - n, ": no credentials were sent: set GOOGLE_APPLICATION_CREDENTIALS");
	else if (c->google && r->status == 403 && !strcmp(r->code, "AccessDenied"))
		snprintf(text + n, room - n, ": grant %.100s the role Storage Object Viewer for the bucket",
			 c->identity.who[0] ? c->identity.who : "the account");
	else if (c->google && r->status == 401)
		snprintf(text + n, room - n, ": the server does not accept the token");
	pthread_mutex_unlock(&c->lock);
}
