/* access.h: who may do what: Host and Origin against foreign web pages, tokens against foreign people.
 * Read-only once set up; any thread. */
#ifndef DPT_SERVER_ACCESS_H
#define DPT_SERVER_ACCESS_H

#include <stdbool.h>

#include "web/api/call.h"
#include "web/server/gate.h"

#define ACCESS_TOKEN_MAX 256

struct access {
	char token[ACCESS_TOKEN_MAX];       /* "": nobody needs one */
	char owner_token[ACCESS_TOKEN_MAX]; /* of the lock file; always welcome; "": none */
	char host[256];                     /* the name given to --host, allowed in Host beside the loopback names */
	bool any_host;                      /* bound to every address: names cannot be known; a token is needed then */
};

struct access_query {
	const struct gate_request *req;
	const struct gate_pass *pass;
	enum call_scope scope;
};

/* False with *code and *why when the caller must not use the route. */
bool access_check(const struct access *a, const struct access_query *q, enum call_error *code, const char **why);

#endif
