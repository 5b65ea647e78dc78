/* SPDX-License-Identifier: Apache-2.0 */
/* oidc.h: sign-in by providers of OpenID Connect: authorization code flow with PKCE (RFC 7636), state and nonce
 * (https://openid.net/specs/openid-connect-core-1_0.html, section 3.1). Says who a browser's user is and what the table
 * of groups grants; knows no requests, tokens or sessions. Its threads are outside the sandbox of the threads that
 * answer requests, and keep nothing between two requests: a sign-in may begin at one process and end at another. */
#ifndef DPT_OIDC_OIDC_H
#define DPT_OIDC_OIDC_H

#include "tracker/base/arena.h"
#include "web/store/auth/token.h"
#include "web/store/base/background_job.h"

struct oidc;

/* Reads the configuration, a JSON file (docs/guides/sign-in.md). address: of this server, for browsers, used unless the
 * file has "url"; NULL: the file must have it. ERR_USAGE: the file is wrong; ERR_UNSUPPORTED: built without libcjose.
 */
int oidc_new(struct oidc **ret, const char *path, const char *address, struct err *err);

/* Starts the threads, and asks each provider for its addresses. ERR_USAGE: one answers, but is not the issuer that the
 * file names. One that cannot be reached is only logged. */
int oidc_start(struct oidc *o, struct err *err);
void oidc_free(struct oidc *o); /* after all sign-ins ended; NULL is fine */

size_t oidc_count(const struct oidc *o);		      /* providers; o NULL: 0 */
const char *oidc_name(const struct oidc *o, size_t provider); /* its segment in addresses */
const char *oidc_label(const struct oidc *o, size_t provider);
/* Its settings as JSON, with defaults, but no secret; the caller frees the text. */
char *oidc_settings(const struct oidc *o, size_t provider);
/* Returns false if there is no provider of that name. */
bool oidc_find(const struct oidc *o, const char *name, size_t *ret);

#define OIDC_SECRET_BYTES 65

/* One of the two steps of a sign-in, without code the first. Everything is in the caller's arena, which must live until
 * `done` is called. */
struct oidc_step {
	size_t provider;
	struct arena *arena;
	const char *secret;	 /* 64 hex digits, drawn for this sign-in and known to the browser alone */
	const char *code, *from; /* of the provider's answer; from: its parameter iss, or NULL */
	void (*done)(void *arg); /* called on a thread of oidc */
	void *arg;
	/* results */
	struct err err;	      /* code 0: success. ERR_PEER: the provider cannot be reached; ERR_BUSY: too many sign-ins;
			       * ERR_USAGE: the sign-in is refused */
	const char *location; /* first step: where the browser signs in */
	const char *issuer, *subject, *name; /* second step: who signed in; name: PROVIDER:NAME */
	enum token_scope scope;		     /* what the groups grant; TOKEN_NONE: nothing, and `refusal` says why */
	const char *grants;		     /* in which experiments (grants.h); "": in all */
	const char *refusal;
	/* private */
	struct oidc *oidc;
	struct thread_pool_task task;
};

void oidc_step(struct oidc *o, struct oidc_step *step);

/* Returns true if `state` of the provider's answer belongs to the secret. */
bool oidc_state_matches(const char *secret, const char *state);

#endif
