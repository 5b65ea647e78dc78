/* SPDX-License-Identifier: Apache-2.0 */
/* client.h: one request of a client, repeated until it is answered. Private to this folder. */
#ifndef DPT_OBJECT_CLIENT_H
#define DPT_OBJECT_CLIENT_H

#include "tracker/base/buf.h"
#include "tracker/object/object.h"

struct object_call {
	struct object_ask ask;
	const void *bytes; /* the body of the request; NULL: none */
	size_t n;
	const char *type;
	const char *header; /* one more header line, or NULL */
	uint64_t begin, end; /* range [begin, end) of an object; end 0: everything from begin on */
	const char *match;   /* If-Match; NULL */
	int (*piece)(void *user, const void *bytes, size_t n); /* receives the body of a successful answer; NULL:
							        * collected in text */
	void *user;
	/* State of the last answer; `got` is the sum of all attempts. */
	long status;
	uint64_t got, total;
	uint64_t from; /* offset at which this attempt began */
	char etag[OBJECT_ETAG_BYTES], generation[OBJECT_GENERATION_BYTES], region[64], why[300];
	unsigned identity; /* number of the credentials of this attempt */
	int renewed;
	double retry_after_s;
	bool refused; /* the receiver of the body refused a piece */
	int wrong;    /* answers without the requested range; a single one may be an accident */
	struct buf text;
};

int client_call(struct object_client *c, struct object_call *call, struct err *err);
void client_call_done(struct object_call *call);

/* "s3://" or "gs://" */
const char *client_scheme(const struct object_client *c);

/* "out of memory: s3://bucket/key" */
int client_nomem(const struct object_client *c, const char *key, struct err *err);

#endif
