/* SPDX-License-Identifier: Apache-2.0 */
/* auth_request.h: short requests to metadata and token servers. */
#ifndef DPT_OBJECT_AUTH_REQUEST_H
#define DPT_OBJECT_AUTH_REQUEST_H

#include <stdbool.h>
#include <time.h>

#include "tracker/base/buf.h"
#include "tracker/curl/curlso.h"

struct auth_request {
	const char *url, *header; /* one line more; NULL: none */
	bool put;
	const char *form; /* body of a POST (application/x-www-form-urlencoded); NULL: none */
	bool far;	  /* a server on the Internet: uses the proxy and waits longer for a connection */
};

/* The answer. */
struct auth_answer {
	long status; /* 0: none, see error */
	time_t date; /* of its Date header; 0: none */
	char error[CURLSO_ERROR_BYTES];
};

/* Sends the request. text receives the body and a NUL. */
void auth_request_send(const struct curlso *so, const struct auth_request *r, struct auth_answer *ret,
		       struct buf *text);

#endif
