/* SPDX-License-Identifier: Apache-2.0 */
/* id_token.c: checks an ID token with libcjose: the signature (RFC 7515) by the one key that its header names, of a
 * kind that only the provider can make, then the claims. */
#include "web/oidc/oidc_inside.h"

#include "config.h"

#ifdef HAVE_CJOSE
#include <cjose/cjose.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/library.h"
#include "tracker/mem/mem.h"

#define LEEWAY_S 60	 /* between two clocks */
#define ISSUED_MAX_S 300 /* a token of this sign-in was just issued */

/* libcjose's functions. It is opened by name, so that dptrack starts without it and its libcrypto. */
#define CJOSE_FUNCTIONS(F)                                                                                             \
	F(jws_import)                                                                                                  \
	F(jws_release)                                                                                                 \
	F(jws_get_protected)                                                                                           \
	F(jws_get_plaintext)                                                                                           \
	F(jws_verify)                                                                                                  \
	F(jwk_import_json)                                                                                             \
	F(jwk_release)                                                                                                 \
	F(header_get)                                                                                                  \
	F(header_get_raw)

struct id_tokens {
#define CJOSE_POINTER(name) __typeof__(cjose_##name) *name;
	CJOSE_FUNCTIONS(CJOSE_POINTER)
#undef CJOSE_POINTER
};

int id_tokens_new(struct id_tokens **ret, struct err *err)
{
	struct id_tokens so;
#define CJOSE_WANTED(name) { "cjose_" #name, &so.name },
	const struct library_function wanted[] = { CJOSE_FUNCTIONS(CJOSE_WANTED) };
#undef CJOSE_WANTED
	const struct library library = { "libcjose.so.0", "--oidc needs libcjose (Debian: libcjose0)" };
	int rc = library_load(&library, wanted, sizeof(wanted) / sizeof(wanted[0]), err);

	if (!rc)
		*ret = mem_dup(&so, sizeof(so));
	return rc;
}

/* The kind of key of a signature that only the holder of a private key can make; NULL: another algorithm, such as
 * "none" or one with a shared key. */
static const char *key_type_of(const char *alg)
{
	static const char *const rsa[] = { "RS256", "RS384", "RS512", "PS256", "PS384", "PS512" };
	static const char *const ec[] = { "ES256", "ES384", "ES512" };

	for (size_t i = 0; alg && i < sizeof(rsa) / sizeof(rsa[0]); i++)
		if (!strcmp(alg, rsa[i]))
			return "RSA";
	for (size_t i = 0; alg && i < sizeof(ec) / sizeof(ec[0]); i++)
		if (!strcmp(alg, ec[i]))
			return "EC";
	return NULL;
}

/* Absent members say nothing. */
static bool agrees_with(json_t *key, const char *member, const char *value)
{
	const char *is = json_string_value(json_object_get(key, member));

	return !is || (value && !strcmp(is, value));
}

/* The key of that id; without an id the only key of its kind. NULL: none, or several. */
static json_t *find_key(json_t *keys, const char *id, const char *alg)
{
	const char *type = key_type_of(alg);
	json_t *list = json_object_get(keys, "keys"), *key, *found = NULL;
	size_t i, n = 0;

	json_array_foreach(list, i, key)
		if (json_object_get(key, "kty") && agrees_with(key, "kty", type) && agrees_with(key, "use", "sig") &&
		    agrees_with(key, "alg", alg) &&
		    (!id || (json_object_get(key, "kid") && agrees_with(key, "kid", id)))) {
			found = key;
			n++;
		}
	return n == 1 ? found : NULL;
}

/* Verifies the signature by the key that the header names. */
static int check_signature(const struct id_tokens *so, cjose_jws_t *jws, const struct id_token_want *want,
			   struct err *err)
{
	cjose_header_t *header = so->jws_get_protected(jws);
	const char *alg = so->header_get(header, "alg", NULL), *id = so->header_get(header, "kid", NULL);
	char *critical;
	cjose_jwk_t *jwk;
	json_t *key;
	bool good;

	if (!key_type_of(alg))
		return err_set(err, ERR_USAGE,
			       "the ID token of %s is signed by \"%.20s\": expected RS256, PS256, ES256 or a "
			       "longer one of these",
			       want->label, alg ? alg : "");
	critical = so->header_get_raw(header, "crit", NULL);
	if (critical) { /* extensions that must be understood */
		free(critical);
		return err_set(err, ERR_USAGE, "the ID token of %s has unknown critical headers", want->label);
	}
	key = find_key(want->keys, id, alg);
	if (!key)
		return err_set(err, ERR_USAGE,
			       "the ID token of %s is signed by the key \"%.100s\", which is not one of its "
			       "keys",
			       want->label, id ? id : "");
	jwk = so->jwk_import_json((cjose_header_t *)key, NULL);
	good = jwk && so->jws_verify(jws, jwk, NULL);
	so->jwk_release(jwk);
	return good ? 0 : err_set(err, ERR_USAGE, "the signature of the ID token of %s is wrong", want->label);
}

/* The audience is one text or a list; with several, "azp" names the one that asked. */
static bool is_for_client(json_t *claims, const char *client)
{
	json_t *audience = json_object_get(claims, "aud"), *azp = json_object_get(claims, "azp"), *one;
	bool found = json_is_string(audience) && !strcmp(json_string_value(audience), client);
	size_t i;

	json_array_foreach(audience, i, one)
		found = found || (json_is_string(one) && !strcmp(json_string_value(one), client));
	if (!azp)
		return found && json_array_size(audience) <= 1;
	return found && json_is_string(azp) && !strcmp(json_string_value(azp), client);
}

/* Refuses a token for its times, and says so if the cause is a clock. */
static int refuse_times(const struct id_token_want *want, const char *what, struct err *err)
{
	const int64_t ahead_s = want->date_s ? want->now_s - want->date_s : 0;

	if (ahead_s > LEEWAY_S || ahead_s < -LEEWAY_S)
		return err_set(err, ERR_USAGE,
			       "the clock of this server is %.0f minutes %s that of %s: set both clocks by NTP",
			       (double)(ahead_s < 0 ? -ahead_s : ahead_s) / 60,
			       ahead_s < 0 ? "earlier than" : "later than", want->label);
	return err_set(err, ERR_USAGE, "the ID token of %s %s: sign in again, and compare the clocks of both machines",
		       want->label, what);
}

static int check_times(json_t *claims, const struct id_token_want *want, struct err *err)
{
	json_t *exp = json_object_get(claims, "exp"), *iat = json_object_get(claims, "iat"),
	       *nbf = json_object_get(claims, "nbf");
	const double now = (double)want->now_s, issued = json_number_value(iat);

	if (!json_is_number(exp) || !json_is_number(iat))
		return err_set(err, ERR_USAGE, "the ID token of %s has no \"%s\"", want->label,
			       json_is_number(exp) ? "iat" : "exp");
	if (now > json_number_value(exp) + LEEWAY_S)
		return refuse_times(want, "has expired", err);
	if (issued > now + LEEWAY_S || (json_is_number(nbf) && json_number_value(nbf) > now + LEEWAY_S))
		return refuse_times(want, "is from the future", err);
	if (now > issued + ISSUED_MAX_S)
		return refuse_times(want, "is older than this sign-in", err);
	return 0;
}

static int check_claims(json_t *claims, const struct id_token_want *want, struct err *err)
{
	const char *issuer = json_string_value(json_object_get(claims, "iss")),
		   *nonce = json_string_value(json_object_get(claims, "nonce"));

	if (!issuer || strcmp(issuer, want->issuer))
		return err_set(err, ERR_USAGE, "the ID token of %s is of another issuer: \"%.200s\"", want->label,
			       issuer ? issuer : "");
	if (!is_for_client(claims, want->audience))
		return err_set(err, ERR_USAGE, "the ID token of %s is for another client than %.100s", want->label,
			       want->audience);
	if (!nonce || strcmp(nonce, want->nonce))
		return err_set(err, ERR_USAGE, "the ID token of %s belongs to another sign-in: sign in again",
			       want->label);
	return check_times(claims, want, err);
}

int id_token_check(const struct id_tokens *so, const char *text, const struct id_token_want *want, json_t **ret,
		   struct err *err)
{
	cjose_jws_t *jws = so->jws_import(text, strlen(text), NULL);
	json_t *claims = NULL;
	uint8_t *bytes = NULL;
	size_t n = 0;
	int rc;

	if (!jws)
		return err_set(err, ERR_USAGE, "the ID token of %s is malformed", want->label);
	rc = check_signature(so, jws, want, err);
	if (!rc && so->jws_get_plaintext(jws, &bytes, &n, NULL))
		claims = json_loadb((const char *)bytes, n, JSON_REJECT_DUPLICATES, NULL);
	if (!rc)
		rc = json_is_object(claims) ? check_claims(claims, want, err)
					    : err_set(err, ERR_USAGE, "the ID token of %s is malformed", want->label);
	so->jws_release(jws);
	if (rc)
		json_decref(claims);
	else
		*ret = claims;
	return rc;
}
#else
int id_tokens_new(struct id_tokens **ret, struct err *err)
{
	(void)ret;
	return err_set(err, ERR_UNSUPPORTED,
		       "--oidc: this dptrack was built without libcjose (Debian: libcjose-dev): install "
		       "it, then configure and build again");
}

int id_token_check(const struct id_tokens *so, const char *text, const struct id_token_want *want, json_t **ret,
		   struct err *err)
{
	(void)so, (void)text, (void)ret;
	return err_set(err, ERR_UNSUPPORTED, "%s: built without libcjose", want->label);
}
#endif
