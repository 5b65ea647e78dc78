/* SPDX-License-Identifier: Apache-2.0 */
/* sign.h: AWS Signature Version 4 of a request to S3, as text for its Authorization header (Amazon S3 API Reference,
 * "Authenticating Requests (AWS Signature Version 4)"). Pure: no clock, no files, no network. */
#ifndef DPT_OBJECT_SIGN_H
#define DPT_OBJECT_SIGN_H

#include <time.h>

#include "tracker/base/buf.h"

#define SIGN_DATE_BYTES 17
#define SIGN_EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" /* SHA-256 of nothing */

struct sign_key {
	const char *id, *secret;
	const char *region; /* "us-east-1" */
};

struct sign_header {
	const char *name, *value; /* in lower case; without spaces at either end */
};

struct sign_request {
	const char *method;
	const char *path, *query;	  /* encoded as below; "/…" and "" */
	const struct sign_header *header; /* all signed headers by name, including host and x-amz-date */
	int n_headers;
	const char *payload; /* SHA-256 of the body in hex, or UNSIGNED-PAYLOAD */
	const char *date;    /* of sign_date */
};

void sign_date(time_t when, char ret[SIGN_DATE_BYTES]); /* "20130524T000000Z" */

/* Appends "AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…". If memory runs out, `to` is marked as
 * failed. */
void sign_v4(const struct sign_request *r, const struct sign_key *k, struct buf *to);

/* ---- what is signed is encoded first ---- */

/* Percent-encodes keys and queries as AWS's signatures require (RFC 3986; Amazon S3 API Reference, "Signature
 * Calculations for the Authorization Header"): every byte except A-Z a-z 0-9 - . _ ~ becomes %XX in capitals. */
#define URI_PAIRS_MAX 16

void uri_add_path(struct buf *to, const char *path); /* keeps slashes */

/* Names are distinct and need no encoding. */
struct uri_pair {
	const char *name, *value;
};

/* Appends name=value&…, sorted by name; at most URI_PAIRS_MAX pairs. */
void uri_add_query(struct buf *to, const struct uri_pair *pair, int n);

#endif
