/* SPDX-License-Identifier: Apache-2.0 */
/* jwt.h: signed claims (JSON Web Token, RFC 7519) that a token server exchanges for an access token (RFC 7523). */
#ifndef DPT_OBJECT_JWT_H
#define DPT_OBJECT_JWT_H

#include <stdint.h>

#include "tracker/base/buf.h"
#include "tracker/base/err.h"

struct jwt_claims {
	const char *issuer, *audience, *scope;
	const char *key_id;	   /* NULL: none */
	int64_t issued_s, until_s; /* since 1970 */
};

/* Loads OpenSSL's libcrypto while files can be opened. ERR_UNSUPPORTED: it is missing. */
int jwt_prepare(struct err *err);

/* Appends the token, signed by RS256 with the private key in PEM. ERR_USAGE: the key is not a valid RSA key. */
int jwt_sign(const struct jwt_claims *c, const char *pem, struct buf *to, struct err *err);

#endif
