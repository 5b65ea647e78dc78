/* SPDX-License-Identifier: Apache-2.0 */
/* client.h: a client of one bucket, and a request of it, repeated until it is answered. Private to this folder. */
#ifndef DPT_OBJECT_CLIENT_H
#define DPT_OBJECT_CLIENT_H

#include <pthread.h>

#include "tracker/object/object.h"
#include "tracker/object/settings.h"

#define CLIENT_IDLE 8
#define CLIENT_TEXT_MAX ((size_t)32 << 20) /* of an answer, or of an address with its query */

struct google_auth;

struct object_client {
	struct object_opts o;
	struct curlso so;
	const char *scheme;
	struct google_auth *google; /* NULL: S3 */
	char bucket[OBJECT_BUCKET_BYTES];
	pthread_mutex_t lock; /* protects all members below */
	struct settings_place place;
	struct identity identity;
	unsigned number; /* of the identity, counted up */
	bool stale;	 /* the identity must be loaded again */
	double renew_s;	 /* wall clock: when to load another one; 0: never */
	uint64_t jitter_draws;
	void *idle[CLIENT_IDLE]; /* libcurl's handles, with their connections */
	int n_idle;
};

struct object_call {
	struct object_ask ask;
	const void *bytes; /* the body of the request; NULL: none */
	size_t n;
	const char *type;
	const char *header;  /* one more header line, or NULL */
	uint64_t begin, end; /* range [begin, end) of an object; end 0: everything from begin on */
	const char *match;   /* If-Match; NULL */
	int (*piece)(void *user, const void *bytes, size_t n); /* receives the body of a successful answer; NULL:
								* collected in text */
	void *user;
	struct curl_request curl; /* the last attempt and its answer */
	uint64_t got;		  /* sum of all attempts */
	uint64_t from;		  /* offset at which this attempt began */
	char etag[OBJECT_ETAG_BYTES]; /* of the last answer that had one */
	char why[300];
	unsigned identity; /* number of the credentials of this attempt */
	int renewed;
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

/* ---- answer.c ----
 * Parses S3's answers in XML, element by element. Untrusted input: documents cannot declare entities; names and texts
 * have a maximum length. */

struct answer_reader {
	/* Called at the end of an element with its path ("ListBucketResult/Contents/Key") and its own text. A nonzero
	 * return stops the parser. */
	int (*element)(void *user, const char *path, const char *text);
	void *user;
};

/* Loads the parser while files can be opened: the process may lose access to them later. answer_read reports
 * failures, except that of a static program: ERR_UNSUPPORTED. */
int answer_prepare(struct err *err);

/* Returns ERR_CORRUPT if the text is not XML, ERR_UNSUPPORTED without expat, otherwise what `element` returned. */
int answer_read(const char *xml, size_t n, const struct answer_reader *r, struct err *err);

/* Makes the request, reads its answer and ends the call. */
int client_read(struct object_client *c, struct object_call *call, const struct answer_reader *r, struct err *err);

/* Appends text of an XML element, with its markup escaped. */
void client_add_xml(struct buf *to, const char *text);

#endif
