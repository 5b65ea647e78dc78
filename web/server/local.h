/* SPDX-License-Identifier: Apache-2.0 */
/* local.h: runs the request handlers without a network, for commands that open the store themselves: a command prints
 * what the server would have answered. One thread. */
#ifndef DPT_SERVER_LOCAL_H
#define DPT_SERVER_LOCAL_H

#include "web/api/api.h"

/* Receives the body of the reply piece by piece; a negative return value (err filled) ends it. */
struct local_sink {
	int (*take)(void *arg, const char *bytes, size_t n, struct err *err);
	void *arg;
};

struct local_opts {
	const char *method, *target;
	const char *body; /* JSON; NULL: empty */
	const void *file; /* file_bytes bytes, in place of body, for a route that accepts files; NULL: none */
	size_t file_bytes;
};

/* Runs one request and sets *ret_status to the HTTP status of the reply. */
int local_request(const struct api *api, const struct local_opts *o, int *ret_status, const struct local_sink *sink,
		  struct err *err);

#endif
