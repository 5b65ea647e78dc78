/* client.h: one request of a client, made until it has an answer. Within the room only. */
#ifndef DPT_OBJECT_CLIENT_H
#define DPT_OBJECT_CLIENT_H

#include "tracker/base/buf.h"
#include "tracker/object/object.h"

struct call {
	struct object_ask ask;
	const void *bytes; /* to be sent; NULL: nothing */
	size_t n;
	const char *type;
	const char *header; /* one more line; NULL */
	uint64_t begin, end; /* range [begin, end) of an object; end 0: all from begin on */
	const char *match;   /* If-Match; NULL */
	int (*piece)(void *user, const void *bytes, size_t n); /* takes what succeeded; NULL: it is kept in text */
	void *user;
	/* Of the last answer; `got` of all of them together. */
	long status;
	uint64_t got, total;
	uint64_t from; /* what this try was to begin with */
	char etag[OBJECT_ETAG_BYTES], region[64], why[200];
	double retry_after_s;
	bool refused; /* by piece */
	int wrong;    /* answers to another question; once may be an accident */
	struct buf text;
};

int client_call(struct object_client *c, struct call *call, struct err *err);
void client_call_done(struct call *call);

/* "out of memory: s3://bucket/key" */
int client_nomem(const struct object_client *c, const char *key, struct err *err);

#endif
