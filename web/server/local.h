/* local.h: the same handlers without a network, for commands that open the store themselves: what a command prints
 * is what the server would have answered. One thread. */
#ifndef DPT_SERVER_LOCAL_H
#define DPT_SERVER_LOCAL_H

#include <stddef.h>

#include "tracker/base/err.h"
#include "web/api/api.h"

/* Receives the reply's body piece by piece; a negative return (err filled) ends it. */
struct local_sink {
	int (*take)(void *arg, const char *bytes, size_t n, struct err *err);
	void *arg;
};

struct local_opts {
	const char *method, *target;
	const char *body; /* NULL: none, else JSON */
	const void *file; /* of file_bytes, instead of body: what a route of files is sent; NULL: none */
	size_t file_bytes;
};

/* Runs one request and fills *ret_status with the HTTP status of the reply. */
int local_request(const struct api *api, const struct local_opts *o, int *ret_status, const struct local_sink *sink,
		  struct err *err);

#endif
