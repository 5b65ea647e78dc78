/* SPDX-License-Identifier: Apache-2.0 */
/* google_auth.c: where credentials come from, and the exchange of a key for an access token (RFC 6749, RFC 7523). */
#include "tracker/base/text.h"
#include "tracker/object/settings.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tracker/base/clock.h"
#include "tracker/base/file.h"
#include "tracker/base/library.h"
#include "tracker/object/sign.h"

/* ---- signed claims ----
 * JSON Web Tokens (RFC 7519) that a token server exchanges for an access token (RFC 7523): header, claims and signature
 * in base64url (RFC 7515). OpenSSL's libcrypto signs; it is loaded when it is first needed. The part of its binary
 * interface that is used is declared here, so that no header is required. */

struct jwt_claims {
	const char *issuer, *audience, *scope;
	const char *key_id;	   /* NULL: none */
	int64_t issued_s, until_s; /* since 1970 */
};

#define PEM_MAX (1 << 20)
#define SIGNATURE_MAX 2048 /* of a key of 16384 bits */

struct cryptoso {
	void *(*BIO_new_mem_buf)(const void *bytes, int n);
	int (*BIO_free)(void *bio);
	void *(*PEM_read_bio_PrivateKey)(void *bio, void **to, void *password, void *user);
	void (*EVP_PKEY_free)(void *key);
	void *(*EVP_MD_CTX_new)(void);
	void (*EVP_MD_CTX_free)(void *context);
	const void *(*EVP_sha256)(void);
	int (*EVP_DigestSignInit)(void *context, void **pkey_context, const void *hash, void *engine, void *key);
	int (*EVP_DigestSign)(void *context, unsigned char *to, size_t *n, const unsigned char *bytes, size_t n_bytes);
};

#define CRYPTOSO_NEED "a service account's key needs OpenSSL's libcrypto (Debian: libssl3)"

static int cryptoso_load(struct cryptoso *ret, struct err *err)
{
#define CRYPTOSO_FUNCTION(name) { #name, &ret->name }
	const struct library_function wanted[] = {
		CRYPTOSO_FUNCTION(BIO_new_mem_buf),    CRYPTOSO_FUNCTION(BIO_free),
		CRYPTOSO_FUNCTION(PEM_read_bio_PrivateKey), CRYPTOSO_FUNCTION(EVP_PKEY_free),
		CRYPTOSO_FUNCTION(EVP_MD_CTX_new),     CRYPTOSO_FUNCTION(EVP_MD_CTX_free),
		CRYPTOSO_FUNCTION(EVP_sha256),	       CRYPTOSO_FUNCTION(EVP_DigestSignInit),
		CRYPTOSO_FUNCTION(EVP_DigestSign)
	};
#undef CRYPTOSO_FUNCTION
	const struct library now = { "libcrypto.so.3", CRYPTOSO_NEED }, older = { "libcrypto.so.1.1", CRYPTOSO_NEED };
	const size_t n = sizeof(wanted) / sizeof(wanted[0]);
	struct err ignored = ERR_INIT;

	return library_load(&older, wanted, n, &ignored) ? library_load(&now, wanted, n, err) : 0;
}

/* Loads OpenSSL's libcrypto while files can be opened. ERR_UNSUPPORTED: it is missing. */
static int jwt_prepare(struct err *err)
{
	struct cryptoso so;

	return cryptoso_load(&so, err);
}

/* Appends an object in JSON as base64url and releases it. */
static void add_json_part(struct buf *to, json_t *object)
{
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

	to->failed |= !text;
	if (text)
		text_add_base64(to, text, strlen(text), true);
	free(text);
	json_decref(object);
}

static json_t *make_claims(const struct jwt_claims *c)
{
	return json_pack("{s:s, s:s, s:s, s:I, s:I}", "iss", c->issuer, "scope", c->scope, "aud", c->audience, "iat",
			 (json_int_t)c->issued_s, "exp", (json_int_t)c->until_s);
}

/* Signs the bytes. Returns false if the key is not usable. */
static bool sign_rs256(const struct cryptoso *so, const char *pem, const struct buf *bytes,
		       unsigned char ret[SIGNATURE_MAX], size_t *ret_n)
{
	void *bio = so->BIO_new_mem_buf(pem, (int)strnlen(pem, PEM_MAX)), *context = so->EVP_MD_CTX_new();
	/* an empty password: libcrypto does not ask for one */
	void *key = bio ? so->PEM_read_bio_PrivateKey(bio, NULL, NULL, (void *)(uintptr_t) "") : NULL;
	bool done = false;

	*ret_n = SIGNATURE_MAX;
	if (key && context && so->EVP_DigestSignInit(context, NULL, so->EVP_sha256(), NULL, key) == 1)
		done = so->EVP_DigestSign(context, ret, ret_n, (const unsigned char *)bytes->data, bytes->len) == 1;
	if (key)
		so->EVP_PKEY_free(key);
	so->EVP_MD_CTX_free(context);
	so->BIO_free(bio);
	return done;
}

/* Appends the token, signed by RS256 with the private key in PEM. ERR_USAGE: the key is not a valid RSA key. */
static int jwt_sign(const struct jwt_claims *c, const char *pem, struct buf *to, struct err *err)
{
	unsigned char signature[SIGNATURE_MAX];
	struct cryptoso so;
	struct buf text;
	size_t n = 0;
	int rc = cryptoso_load(&so, err);

	if (rc)
		return rc;
	buf_init(&text, PEM_MAX);
	add_json_part(&text, json_pack("{s:s, s:s, s:s*}", "alg", "RS256", "typ", "JWT", "kid", c->key_id));
	buf_addc(&text, '.');
	add_json_part(&text, make_claims(c));
	if (buf_failed(&text))
		rc = err_nomem(err, "a token");
	else if (!sign_rs256(&so, pem, &text, signature, &n))
		rc = err_set(err, ERR_USAGE, "private_key is not an RSA key in PEM");
	if (!rc) {
		buf_add(to, text.data, text.len);
		buf_addc(to, '.');
		text_add_base64(to, signature, n, true);
	}
	buf_done(&text);
	return rc;
}

#define FILE_MAX ((size_t)1 << 20)
#define ANSWER_MAX ((size_t)64 << 10)
#define PATH_BYTES 4096
#define SCOPE "https://www.googleapis.com/auth/devstorage.read_write"
#define TOKEN_SERVER "https://oauth2.googleapis.com/token"
#define METADATA "metadata.google.internal"
#define METADATA_TOKEN "/computeMetadata/v1/instance/service-accounts/default/token"
#define STORAGE "https://storage.googleapis.com"
#define GRANT_JWT "urn:ietf:params:oauth:grant-type:jwt-bearer"
#define TRIES 4
#define WAIT_S 0.25
#define JWT_S 3600
#define SKEW_S 60 /* a difference of clocks that is worth a word */

enum google_source { GOOGLE_ANONYMOUS, GOOGLE_HMAC, GOOGLE_ACCOUNT_KEY, GOOGLE_USER, GOOGLE_METADATA };

struct google_auth {
	enum google_source source;
	char file[PATH_BYTES];
	json_t *root;		 /* of the file */
	const char *id, *secret; /* HMAC: variables */
};

/* ---- sources ---- */

static const char *find_file_member(const struct google_auth *a, const char *name)
{
	const char *text = json_string_value(json_object_get(a->root, name));

	return text && *text ? text : NULL;
}

static int require_members(const struct google_auth *a, const char *const *name, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++)
		if (!find_file_member(a, name[i]))
			return err_set(err, ERR_USAGE, "%.300s: has no %s: create the file again", a->file, name[i]);
	return 0;
}

/* Checks the kind of the file and its members. */
static int check_credentials_file(struct google_auth *a, struct err *err)
{
	static const char *const account[] = { "client_email", "private_key" };
	static const char *const user[] = { "client_id", "client_secret", "refresh_token" };
	const char *type = find_file_member(a, "type");

	if (type && !strcmp(type, "service_account")) {
		a->source = GOOGLE_ACCOUNT_KEY;
		return require_members(a, account, 2, err) ? ERR_USAGE : jwt_prepare(err);
	}
	if (type && !strcmp(type, "authorized_user")) {
		a->source = GOOGLE_USER;
		return require_members(a, user, 3, err);
	}
	return err_set(err, ERR_USAGE,
		       "%.250s: credentials of type %.50s are not supported: expected service_account or "
		       "authorized_user",
		       a->file, type ? type : "(none)");
}

/* Reads a->file. ERR_NOENT: it does not exist. */
static int load_credentials_file(struct google_auth *a, struct err *err)
{
	struct err failure = ERR_INIT;
	json_error_t e;
	struct buf text;
	int rc;

	buf_init(&text, FILE_MAX);
	rc = file_load(&text, a->file, &failure);
	if (rc && errno == ENOENT)
		rc = ERR_NOENT;
	else if (rc)
		rc = err_set(err, ERR_USAGE, "%s", failure.text);
	else
		a->root = json_loadb(text.data ? text.data : "", text.len, 0, &e);
	if (!rc && !json_is_object(a->root))
		rc = err_set(err, ERR_USAGE, "%.300s: is not a file of Google credentials: line %d: %.100s", a->file,
			     e.line, e.text);
	if (text.data)
		explicit_bzero(text.data, text.len);
	buf_done(&text);
	return rc ? rc : check_credentials_file(a, err);
}

/* Finds gcloud's file of "gcloud auth application-default login". */
static bool find_gcloud_file(char ret[PATH_BYTES])
{
	const char *config = settings_env("CLOUDSDK_CONFIG"), *home = settings_env("HOME");

	if (config)
		return snprintf(ret, PATH_BYTES, "%s/application_default_credentials.json", config) < PATH_BYTES;
	return home &&
	       snprintf(ret, PATH_BYTES, "%s/.config/gcloud/application_default_credentials.json", home) < PATH_BYTES;
}

static int find_hmac_keys(struct google_auth *a, struct err *err)
{
	a->id = settings_env("GS_ACCESS_KEY_ID");
	a->secret = settings_env("GS_SECRET_ACCESS_KEY");
	if (!a->id && !a->secret)
		return ERR_NOENT;
	a->source = GOOGLE_HMAC;
	return a->id && a->secret ? 0
				  : err_set(err, ERR_USAGE,
					    "GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY must be set together: %s is not "
					    "set",
					    a->id ? "GS_SECRET_ACCESS_KEY" : "GS_ACCESS_KEY_ID");
}

static bool is_true(const char *variable)
{
	const char *value = settings_env(variable);

	return value && (!strcasecmp(value, "true") || !strcmp(value, "1"));
}

/* Tries one source after another. The metadata server is only asked for the first token. */
static int find_google_source(struct google_auth *a, struct err *err)
{
	const char *file = settings_env("GOOGLE_APPLICATION_CREDENTIALS");
	int rc;

	a->source = GOOGLE_ANONYMOUS;
	if (is_true("CLOUDSDK_AUTH_DISABLE_CREDENTIALS"))
		return 0;
	rc = find_hmac_keys(a, err);
	if (rc != ERR_NOENT)
		return rc;
	if (file) {
		snprintf(a->file, sizeof(a->file), "%s", file);
		rc = load_credentials_file(a, err);
		return rc == ERR_NOENT
			       ? err_set(err, ERR_USAGE, "GOOGLE_APPLICATION_CREDENTIALS=%.300s: no such file", file)
			       : rc;
	}
	a->source = GOOGLE_METADATA;
	if (settings_env("GCE_METADATA_HOST"))
		return 0;
	if (settings_env("STORAGE_EMULATOR_HOST")) {
		a->source = GOOGLE_ANONYMOUS;
		return 0;
	}
	rc = find_gcloud_file(a->file) ? load_credentials_file(a, err) : ERR_NOENT;
	return rc == ERR_NOENT ? 0 : rc;
}

int google_auth_open(struct google_auth **ret, struct err *err)
{
	struct google_auth *a = calloc(1, sizeof(*a));
	int rc = a ? find_google_source(a, err) : err_nomem(err, "Google credentials");

	if (rc)
		google_auth_close(a);
	else
		*ret = a;
	return rc;
}

void google_auth_close(struct google_auth *a)
{
	if (!a)
		return;
	json_decref(a->root);
	free(a);
}

/* ---- tokens ---- */

static const char *describe_source(const struct google_auth *a)
{
	return a->source == GOOGLE_METADATA ? "Google's metadata server" : a->file;
}

/* {"access_token", "expires_in": 3599, "token_type": "Bearer"} */
static int parse_access_token(const struct google_auth *a, const struct buf *text, struct identity *ret,
			      struct err *err)
{
	json_t *root = json_loads(text->data, 0, NULL);
	const char *token = json_string_value(json_object_get(root, "access_token"));
	const double seconds = json_number_value(json_object_get(root, "expires_in"));
	int rc = 0;

	if (!token || !*token || strlen(token) >= sizeof(ret->token) || strpbrk(token, "\r\n")) {
		rc = err_set(err, ERR_USAGE, "%.300s: the token server's answer has no usable access token",
			     describe_source(a));
	} else {
		snprintf(ret->token, sizeof(ret->token), "%s", token);
		ret->kind = IDENTITY_BEARER;
		ret->until_s = seconds > 0 ? clock_wall_s() + seconds : 0;
		ret->given = true;
	}
	json_decref(root);
	return rc;
}

/* Explains a refusal: {"error": "invalid_grant", "error_description": "Invalid JWT: …"}, and by how much the clocks
 * differ. */
static int refuse_token(const struct google_auth *a, const struct curl_answer *answer, const struct buf *text,
			struct err *err)
{
	json_t *root = json_loads(text->data ? text->data : "", 0, NULL);
	const char *code = json_string_value(json_object_get(root, "error")),
		   *why = json_string_value(json_object_get(root, "error_description"));
	const long apart = answer->date ? (long)((double)answer->date - clock_wall_s()) : 0;
	char clock[120] = "";
	int rc;

	if (apart > SKEW_S || apart < -SKEW_S)
		snprintf(clock, sizeof(clock), ": this machine's clock is %ld s %s: set it", labs(apart),
			 apart > 0 ? "slow" : "fast");
	if (a->source == GOOGLE_METADATA && answer->status == 404)
		rc = err_set(err, ERR_USAGE, "%s: this machine has no service account: attach one to it",
			     describe_source(a));
	else
		rc = err_set(err, ERR_USAGE, "%.200s: the token server answered status %ld%s%.60s%s%.120s%s",
			     describe_source(a), answer->status, code ? ", " : "", code ? code : "", why ? ": " : "",
			     why ? why : "", clock);
	json_decref(root);
	return rc;
}

static void add_form_pair(struct buf *to, const char *name, const char *value)
{
	uri_add_query(to, &(struct uri_pair){ name, value ? value : "" }, 1);
}

/* Appends the form that requests a token with the file's key. */
static int add_token_form(const struct google_auth *a, const char *server, struct buf *to, struct err *err)
{
	const int64_t now = (int64_t)clock_wall_s();
	const struct jwt_claims claims = { .issuer = find_file_member(a, "client_email"),
					   .audience = server,
					   .scope = SCOPE,
					   .key_id = find_file_member(a, "private_key_id"),
					   .issued_s = now,
					   .until_s = now + JWT_S };
	struct err failure = ERR_INIT;
	int rc;

	if (a->source == GOOGLE_USER) {
		add_form_pair(to, "grant_type", "refresh_token");
		buf_addc(to, '&');
		add_form_pair(to, "client_id", find_file_member(a, "client_id"));
		buf_addc(to, '&');
		add_form_pair(to, "client_secret", find_file_member(a, "client_secret"));
		buf_addc(to, '&');
		add_form_pair(to, "refresh_token", find_file_member(a, "refresh_token"));
		return 0;
	}
	add_form_pair(to, "grant_type", GRANT_JWT);
	buf_adds(to, "&assertion=");
	rc = jwt_sign(&claims, find_file_member(a, "private_key"), to, &failure);
	return rc ? err_set(err, rc, "%.250s: %s", a->file, failure.text) : 0;
}

/* Makes the address of the metadata server. */
static void format_metadata_url(char ret[PATH_BYTES])
{
	const char *host = settings_env("GCE_METADATA_HOST");

	snprintf(ret, PATH_BYTES, "http://%.300s" METADATA_TOKEN, host ? host : METADATA);
}

/* A request for a token and its answer. */
struct token_exchange {
	const struct google_auth *auth;
	const struct curlso *so;
	struct curl_request request;
	const char *header; /* a line of the request; NULL: none */
	char url[PATH_BYTES];
	struct buf form, text;
};

static int prepare_token_exchange(struct token_exchange *t, struct err *err)
{
	const char *server = find_file_member(t->auth, "token_uri");
	int rc;

	if (t->auth->source == GOOGLE_METADATA) {
		format_metadata_url(t->url);
		t->request = (struct curl_request){ .url = t->url, .direct = true };
		t->header = "Metadata-Flavor: Google";
		return 0;
	}
	server = server ? server : TOKEN_SERVER;
	rc = add_token_form(t->auth, server, &t->form, err);
	if (!rc && buf_failed(&t->form))
		rc = err_nomem(err, "a token request");
	t->request = (struct curl_request){ .url = server, .body = t->form.data, .body_bytes = t->form.len };
	return rc;
}

static int fail_token_exchange(const struct token_exchange *t, struct err *err)
{
	const struct google_auth *a = t->auth;

	if (t->request.answer.status)
		return err_set(err, ERR_IO, "%.300s: the token server answered status %ld", describe_source(a),
			       t->request.answer.status);
	if (a->source == GOOGLE_METADATA)
		return err_set(err, ERR_USAGE,
			       "no credentials for Google Cloud Storage: set GOOGLE_APPLICATION_CREDENTIALS, or "
			       "GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY, or run \"gcloud auth application-default "
			       "login\" (no metadata server: %.100s)", t->request.error);
	return err_set(err, ERR_IO, "%.200s: the token server cannot be reached: %.200s", a->file, t->request.error);
}

/* Sends the request, again after failures of the network or the server. */
static int exchange_token(struct token_exchange *t, struct err *err)
{
	const bool guessed = t->auth->source == GOOGLE_METADATA && !settings_env("GCE_METADATA_HOST");
	double wait = WAIT_S;
	long status;

	for (int i = 0; i < TRIES; i++, wait *= 2) {
		auth_request_send(t->so, t->header, &t->request, &t->text);
		status = t->request.answer.status;
		if (status && !curl_may_pass(status))
			return 0;
		if (!status && guessed) /* this machine has none */
			break;
		if (i + 1 < TRIES)
			clock_sleep_s(wait);
	}
	return fail_token_exchange(t, err);
}

static void wipe_buffer(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->len);
	buf_done(b);
}

/* Requests an access token of the metadata server, or in exchange for the file's key. */
static int request_access_token(const struct google_auth *a, const struct curlso *so, struct identity *ret,
				struct err *err)
{
	struct token_exchange t = { .auth = a, .so = so };
	int rc;

	buf_init(&t.form, ANSWER_MAX);
	buf_init(&t.text, ANSWER_MAX);
	rc = prepare_token_exchange(&t, err);
	if (!rc)
		rc = exchange_token(&t, err);
	if (!rc)
		rc = t.request.answer.status == 200 ? parse_access_token(a, &t.text, ret, err)
					    : refuse_token(a, &t.request.answer, &t.text, err);
	wipe_buffer(&t.form);
	wipe_buffer(&t.text);
	return rc;
}

int google_auth_identity(const struct google_auth *a, const struct curlso *so, struct identity *ret, struct err *err)
{
	const char *who = find_file_member(a, "client_email");

	*ret = (struct identity){ .kind = a->source == GOOGLE_HMAC ? IDENTITY_KEYS : IDENTITY_ANONYMOUS };
	snprintf(ret->who, sizeof(ret->who), "%.200s", who ? who : "");
	if (a->source == GOOGLE_ANONYMOUS)
		return 0;
	if (a->source != GOOGLE_HMAC)
		return request_access_token(a, so, ret, err);
	return identity_copy(ret, a->id, a->secret, NULL, err);
}

/* ---- the address ---- */

int google_place(const char *bucket, struct settings_place *ret, struct err *err)
{
	const char *host = settings_env("STORAGE_EMULATOR_HOST");
	char address[SETTINGS_URL_BYTES];

	*ret = (struct settings_place){ .region = "auto" };
	snprintf(address, sizeof(address), "%s%.400s", host && !strstr(host, "://") ? "http://" : "",
		 host ? host : STORAGE);
	return settings_place_at(ret, "STORAGE_EMULATOR_HOST", address, bucket, err);
}
