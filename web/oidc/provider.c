/* SPDX-License-Identifier: Apache-2.0 */
/* provider.c: requests to a provider: its addresses, the exchange of a code for tokens (RFC 6749, section 4.1.3), its
 * keys and what it says of a person. */
#include "tracker/base/text.h"
#include "web/oidc/oidc_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/sha256.h"
#include "tracker/mem/mem.h"
#include "tracker/sink/http_client.h"

#define ANSWER_S 10.0 /* limit for one request */
#define ANSWER_BYTES_MAX ((size_t)1 << 20)

struct answer {
	long status;
	int64_t date_s;
	json_t *json; /* NULL: the body is no JSON */
};

/* Sends a request; *ret is filled for any status. ERR_PEER: no answer. */
static int send_request(const struct provider *p, const char *url, const struct http_request *request,
			struct answer *ret, struct err *err)
{
	const char *path = strchr(strstr(url, "://") + 3, '/');
	char *host = path ? mem_strndup(url, (size_t)(path - url)) : mem_strdup(url);
	struct http_request r = *request;
	struct http_reply reply = { 0 };
	struct http *h = NULL;
	int rc;

	r.path = path ? path : "";
	r.deadline_s = clock_mono_s() + ANSWER_S;
	rc = http_open(&h, host, NULL, err);
	if (!rc)
		rc = http_send(h, &r, &reply, err);
	if (!rc) {
		*ret = (struct answer){ .status = reply.status, .date_s = reply.date_s };
		if (reply.body.len <= ANSWER_BYTES_MAX)
			ret->json = json_loadb(reply.body.data ? reply.body.data : "", reply.body.len,
					       JSON_REJECT_DUPLICATES, NULL);
		http_reply_done(&reply);
		if (ret->status >= 500) {
			rc = err_set(err, ERR_PEER, "%s: status %ld", http_url(h), ret->status);
			json_decref(ret->json);
		}
	}
	if (rc) {
		err_prefix(err, "%s cannot be reached now", p->label);
		rc = err->code = ERR_PEER;
	}
	http_close(h);
	free(host);
	return rc;
}

int provider_get(const struct provider *p, const char *url, const char *access_token, json_t **ret, struct err *err)
{
	char *authorization = access_token ? mem_printf("Authorization: Bearer %s", access_token) : NULL;
	const char *const headers[] = { "Accept: application/json", authorization, NULL };
	struct answer a = { 0 };
	int rc = access_token && strpbrk(access_token, "\r\n")
			 ? err_set(err, ERR_USAGE, "%s sent an access token with a line break", p->label)
			 : send_request(p, url, &(struct http_request){ .method = "GET", .headers = headers }, &a, err);

	free(authorization);
	if (!rc && (a.status != 200 || !json_is_object(a.json))) {
		json_decref(a.json);
		return a.status != 200 ? err_set(err, ERR_USAGE, "%s: status %ld", url, a.status)
				       : err_set(err, ERR_USAGE, "%s: expected a JSON object", url);
	}
	*ret = rc ? NULL : a.json;
	return rc;
}

/* A member that is an address which secrets may be sent to. */
static int take_address(const struct provider *p, json_t *root, const char *member, const char **ret, struct err *err)
{
	*ret = json_string_value(json_object_get(root, member));
	if (*ret && oidc_is_safe_address(*ret))
		return 0;
	return err_set(err, ERR_USAGE, "the issuer %s: \"%s\" of its description: expected an https:// address",
		       p->issuer, member);
}

int provider_discover(const struct provider *p, struct discovery *ret, struct err *err)
{
	const size_t n = strlen(p->issuer);
	char *url = mem_printf("%.*s/.well-known/openid-configuration", (int)(p->issuer[n - 1] == '/' ? n - 1 : n),
			       p->issuer);
	struct discovery d = { 0 };
	const char *issuer;
	int rc = provider_get(p, url, NULL, &d.root, err);

	free(url);
	if (rc)
		return rc == ERR_PEER
			       ? rc
			       : err_prefix(err, "%s is not an issuer of OpenID Connect: check \"issuer\"", p->issuer);
	issuer = json_string_value(json_object_get(d.root, "issuer"));
	if (!issuer || strcmp(issuer, p->issuer))
		rc = err_set(err, ERR_USAGE, "%s: the provider there is the issuer \"%.200s\": check \"issuer\"",
			     p->issuer, issuer ? issuer : "");
	if (!rc)
		rc = take_address(p, d.root, "authorization_endpoint", &d.authorization, err);
	if (!rc)
		rc = take_address(p, d.root, "token_endpoint", &d.token, err);
	if (!rc)
		rc = take_address(p, d.root, "jwks_uri", &d.keys, err);
	if (!rc && json_object_get(d.root, "userinfo_endpoint"))
		rc = take_address(p, d.root, "userinfo_endpoint", &d.userinfo, err);
	if (rc)
		discovery_done(&d);
	else
		*ret = d;
	return rc;
}

void discovery_done(struct discovery *d)
{
	json_decref(d->root);
	*d = (struct discovery){ 0 };
}

void provider_add_query(struct buf *to, const char *name, const char *value)
{
	if (to->len && !strchr("?&", to->data[to->len - 1]))
		buf_addc(to, '&');
	buf_addf(to, "%s=", name);
	text_add_escaped(to, value, "-._~");
}

void provider_derive(const char *secret, const char *what, char ret[OIDC_SECRET_BYTES])
{
	char text[OIDC_SECRET_BYTES + 32];

	sha256_hex(text, (size_t)snprintf(text, sizeof(text), "%s %s", what, secret), ret);
}

/* Returns true if the provider accepts the client's password in a header (RFC 6749, section 2.3.1), its default. */
static bool accepts_basic(const struct discovery *d)
{
	json_t *methods = json_object_get(d->root, "token_endpoint_auth_methods_supported"), *method;
	size_t i;

	json_array_foreach(methods, i, method)
		if (json_is_string(method) && !strcmp(json_string_value(method), "client_secret_basic"))
			return true;
	return !methods;
}

/* Writes the form that redeems the code, and the header with the client's password; "" if it is in the form. */
static void write_redemption(const struct provider *p, const struct discovery *d, const struct oidc_step *step,
			     struct buf *form, struct buf *header)
{
	const bool basic = p->secret[0] && accepts_basic(d);
	char verifier[OIDC_SECRET_BYTES];
	struct buf pair;

	provider_derive(step->secret, "verifier", verifier);
	provider_add_query(form, "grant_type", "authorization_code");
	provider_add_query(form, "code", step->code);
	provider_add_query(form, "redirect_uri", p->redirect_uri);
	provider_add_query(form, "code_verifier", verifier);
	if (!basic)
		provider_add_query(form, "client_id", p->client_id);
	if (p->secret[0] && !basic)
		provider_add_query(form, "client_secret", p->secret);
	if (!basic)
		return;
	buf_init(&pair, 4096);
	text_add_escaped(&pair, p->client_id, "-._~");
	buf_addc(&pair, ':');
	text_add_escaped(&pair, p->secret, "-._~");
	buf_adds(header, "Authorization: Basic ");
	text_add_base64(header, pair.data, pair.len, false);
	buf_done(&pair);
}

int provider_redeem(const struct discovery *d, const struct oidc_step *step, struct redeemed *ret, struct err *err)
{
	const struct provider *p = &step->oidc->providers[step->provider];
	struct answer a = { 0 };
	struct buf form, header;
	const char *code, *why;
	int rc;

	buf_init(&form, 16384);
	buf_init(&header, 8192);
	write_redemption(p, d, step, &form, &header);
	if (buf_failed(&form) || buf_failed(&header))
		rc = err_set(err, ERR_USAGE, "the code of %s is too long", p->label);
	else
		rc = send_request(p, d->token,
				  &(struct http_request){ .method = "POST",
							  .body = form.data,
							  .body_bytes = form.len,
							  .content_type = "application/x-www-form-urlencoded",
							  .headers = (const char *const[]){ "Accept: application/json",
											    header.data, NULL } },
				  &a, err);
	buf_done(&form);
	buf_done(&header);
	if (rc)
		return rc;
	if (a.status == 200 && json_string_value(json_object_get(a.json, "id_token"))) {
		*ret = (struct redeemed){ a.json, a.date_s };
		return 0;
	}
	code = json_string_value(json_object_get(a.json, "error"));
	why = json_string_value(json_object_get(a.json, "error_description"));
	if (code && !strcmp(code, "invalid_client"))
		rc = err_set(err, ERR_USAGE, "%s does not accept this server: check client_id and client_secret_file",
			     p->label);
	else if (code)
		rc = err_set(err, ERR_USAGE, "%s refused the sign-in: %.60s%s%.200s: sign in again", p->label, code,
			     why ? ": " : "", why ? why : "");
	else
		rc = err_set(err, ERR_USAGE, "%s sent no ID token (status %ld)", p->label, a.status);
	json_decref(a.json);
	return rc;
}
