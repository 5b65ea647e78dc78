/* client.h: one HTTP/1.1 request over a plain connection: what a command needs to ask a server. One thread. */
#ifndef DPT_CLI_CLIENT_H
#define DPT_CLI_CLIENT_H

#include "tracker/base/err.h"
#include "web/server/local.h"

/* url: http://HOST[:PORT][/PREFIX]. token: NULL or what Authorization: Bearer carries. Fills *ret_status and hands
 * the body on as it comes. ERR_PEER: no answer, or one that breaks off. */
struct client_opts {
	const char *url;
	const char *token;
	struct local_opts request;
};

int client_request(const struct client_opts *o, int *ret_status, const struct local_sink *sink, struct err *err);

#endif
