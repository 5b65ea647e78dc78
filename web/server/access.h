/* access.h: who may do what: Host and Origin against foreign web pages, tokens and sessions against foreign people.
 * Read-only once set up; any thread. */
#ifndef DPT_SERVER_ACCESS_H
#define DPT_SERVER_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "web/api/call.h"
#include "web/server/gate.h"
#include "web/store/auth/token.h"

struct access {
	struct store *store; /* knows the tokens */
	char host[256];      /* the name given to --host, allowed in Host beside the loopback names */
	bool any_host;       /* names cannot be known (every address, a proxy before us); a token is needed then */
	bool behind_proxy;
};

struct access_query {
	const struct gate_request *req;
	const struct gate_pass *pass;
	const char *cookie; /* name of the session's */
	enum call_scope scope;
	uint64_t from; /* see access_from */
};

/* The refusal's members are meant where access_check says no. */
struct access_answer {
	enum token_scope has; /* what the request's token or session allows; TOKEN_NONE: none was needed */
	enum call_error code;
	const char *why;
	int retry_s; /* 0: asking again does not help */
};

/* Whether the caller may use the route. */
bool access_check(const struct access *a, const struct access_query *q, struct access_answer *ret);

struct sockaddr;

/* Who asks, as a number made of the address (of IPv6 its first half): the peer's, or what a proxy that is believed
 * says. */
uint64_t access_from(const struct access *a, const struct gate_request *req, const struct sockaddr *peer);

/* Whether a proxy that is believed got the request encrypted. */
bool access_forwarded_tls(const struct access *a, const struct gate_request *req);

/* Whether a browser asks: it shows a form of ours instead of asking for a password by itself. */
bool access_browser(const struct gate_request *req);

#endif
