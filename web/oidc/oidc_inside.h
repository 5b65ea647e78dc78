/* SPDX-License-Identifier: Apache-2.0 */
/* oidc_inside.h: what the files of this room share: a provider's settings, its requests and its ID tokens. */
#ifndef DPT_OIDC_OIDC_INSIDE_H
#define DPT_OIDC_OIDC_INSIDE_H

#include <jansson.h>
#include <stdatomic.h>

#include "tracker/base/buf.h"
#include "web/oidc/oidc.h"

/* Texts are borrowed from the configuration's JSON. */
struct provider {
	const char *name, *label, *issuer, *client_id, *scopes, *groups_claim, *name_claim;
	json_t *grants;		/* group: grant; "*": everybody */
	char secret[256];	/* "": a public client */
	char redirect_uri[600]; /* where the provider sends browsers back to */
};

/* ---- oidc_config.c ---- */

struct oidc {
	json_t *root;
	struct id_tokens *tokens;
	struct provider *providers;
	size_t count;
	struct thread_pool *pool;
	atomic_uint waiting; /* steps that have not ended */
};

int oidc_config_read(struct oidc *o, const char *path, const char *address, struct err *err);

/* Checks an address that passwords and tokens are sent to: https://, or http:// to this machine. */
bool oidc_is_safe_address(const char *url);

/* ---- provider.c: requests to a provider ---- */

/* Its addresses, in `root` (OpenID Connect Discovery 1.0, section 3). */
struct discovery {
	json_t *root;
	const char *authorization, *token, *keys, *userinfo; /* userinfo: NULL: none */
};

/* ERR_PEER: the provider cannot be reached; ERR_USAGE: the answer is not that of the configured issuer. */
int provider_discover(const struct provider *p, struct discovery *ret, struct err *err);
void discovery_done(struct discovery *d); /* a zeroed one is fine */

/* What a provider answers to a code: id_token and access_token. */
struct redeemed {
	json_t *root;
	int64_t date_s; /* the provider's clock; 0: unknown */
};

int provider_redeem(const struct discovery *d, const struct oidc_step *step, struct redeemed *ret, struct err *err);
int provider_get(const struct provider *p, const char *url, const char *access_token, json_t **ret, struct err *err);

void provider_add_query(struct buf *to, const char *name, const char *value); /* "name=value", with & where needed */


/* The values of a sign-in that follow from its secret: 64 hex digits each. */
void provider_derive(const char *secret, const char *what, char ret[OIDC_SECRET_BYTES]);

/* ---- id_token.c: the only user of libcjose ---- */

struct id_token_want {
	const char *label, *issuer, *audience;
	const char *nonce;
	json_t *keys;	/* a JWK set (RFC 7517) */
	int64_t now_s;	/* this server's clock */
	int64_t date_s; /* the provider's; 0: unknown */
};

struct id_tokens; /* libcjose, opened */

/* ERR_UNSUPPORTED: built without it, or it is not installed. free() closes. */
int id_tokens_new(struct id_tokens **ret, struct err *err);

/* Checks signature and claims (OpenID Connect Core 1.0, section 3.1.3.7). *ret: the claims, which the caller frees.
 * ERR_USAGE: the token must not be believed, with the reason. */
int id_token_check(const struct id_tokens *so, const char *text, const struct id_token_want *want, json_t **ret,
		   struct err *err);

#endif
