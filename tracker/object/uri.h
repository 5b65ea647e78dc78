/* uri.h: percent-encodes keys and queries as AWS's signatures require (RFC 3986; Amazon S3 API Reference, "Signature
 * Calculations for the Authorization Header"): every byte except A-Z a-z 0-9 - . _ ~ becomes %XX in capitals. */
#ifndef DPT_OBJECT_URI_H
#define DPT_OBJECT_URI_H

#include "tracker/base/buf.h"

#define URI_PAIRS_MAX 16

void uri_add_path(struct buf *to, const char *path); /* keeps slashes */

/* Names are distinct and need no encoding. */
struct uri_pair {
	const char *name, *value;
};

/* Appends name=value&…, sorted by name; at most URI_PAIRS_MAX pairs. */
void uri_add_query(struct buf *to, const struct uri_pair *pair, int n);

#endif
