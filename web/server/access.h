/* SPDX-License-Identifier: Apache-2.0 */
/* access.h: authorization. Host and Origin checks stop foreign web pages; tokens and sessions stop foreign people.
 * Read-only after set-up; any thread. */
#ifndef DPT_SERVER_ACCESS_H
#define DPT_SERVER_ACCESS_H

#include "web/server/gate.h"

struct access {
	struct store *store; /* has the tokens */
	char host[256];	     /* the value of --host, allowed in Host together with the loopback names */
	bool any_host;	     /* the names are unknown (bound to every address, or used through a proxy); a token is then
			      * required */
	bool behind_proxy;
};

struct access_query {
	const struct gate_request *req;
	const struct gate_pass *pass;
	const char *cookie; /* name of the session cookie */
	enum call_scope scope;
	enum call_names names;
	enum call_shared shared;
	uint64_t from; /* result of access_from */
	struct arena *arena; /* for the answer's texts */
};

/* code, why and retry_s are set when access_check returns false. */
struct access_answer {
	enum token_scope has; /* scope of the request's token or session; TOKEN_NONE: no token was required */
	bool lock_file; /* the request has the token of the lock file */
	enum call_error code;
	const char *why;
	int retry_s;	/* 0: a retry does not help */
	uint64_t owner; /* a number made from the request's valid token; 0: no such token */
	const char *person, *grants, *share; /* as in struct call_client */
};

/* Returns true if the caller may use the route. */
bool access_check(const struct access *a, const struct access_query *q, struct access_answer *ret);

struct sockaddr;

/* Identifies a client by a hash of its address (of IPv6 the network of 64 bits): the peer's, or what a trusted proxy
 * reports in the request, which may be NULL. */
uint64_t access_from(const struct access *a, const struct gate_request *req, const struct sockaddr *peer);

/* Returns true if a trusted proxy received the request over TLS. */
bool access_forwarded_tls(const struct access *a, const struct gate_request *req);

/* Returns true if a browser sent the request. The page shows a form then, and the browser must not open its password
 * dialog. */
bool access_browser(const struct gate_request *req);

#endif
