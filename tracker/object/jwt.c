/* SPDX-License-Identifier: Apache-2.0 */
/* jwt.c: header, claims and signature in base64url (RFC 7515). OpenSSL's libcrypto signs; it is loaded when it is first
 * needed. The part of its binary interface that is used is declared here, so that no header is required. */
#include "tracker/object/jwt.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/library.h"

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

int jwt_prepare(struct err *err)
{
	struct cryptoso so;

	return cryptoso_load(&so, err);
}

static void add_base64url(struct buf *to, const unsigned char *bytes, size_t n)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

	for (size_t i = 0; i < n; i += 3) {
		uint32_t three = (uint32_t)bytes[i] << 16 | (i + 1 < n ? (uint32_t)bytes[i + 1] << 8 : 0) |
				 (i + 2 < n ? bytes[i + 2] : 0);

		for (size_t k = 0; k < 4 && k <= n - i; k++)
			buf_addc(to, letters[three >> (18 - 6 * k) & 63]);
	}
}

/* Appends an object in JSON as base64url and releases it. */
static void add_json_part(struct buf *to, json_t *object)
{
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

	to->failed |= !text;
	if (text)
		add_base64url(to, (const unsigned char *)text, strlen(text));
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

int jwt_sign(const struct jwt_claims *c, const char *pem, struct buf *to, struct err *err)
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
		add_base64url(to, signature, n);
	}
	buf_done(&text);
	return rc;
}
