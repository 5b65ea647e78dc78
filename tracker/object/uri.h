/* uri.h: keys and queries as AWS's signatures want them (RFC 3986; Amazon S3 API Reference, "Signature Calculations for
 * the Authorization Header"): every byte but A-Z a-z 0-9 - . _ ~ as %XX in capitals. */
#ifndef DPT_OBJECT_URI_H
#define DPT_OBJECT_URI_H

#include "tracker/base/buf.h"

#define URI_PAIRS_MAX 16

void uri_add_path(struct buf *to, const char *path); /* slashes stay */

/* Names differ and hold only characters that stay as they are. */
struct uri_pair {
	const char *name, *value;
};

/* name=value&…, by name; at most URI_PAIRS_MAX of them. */
void uri_add_query(struct buf *to, const struct uri_pair *pair, int n);

#endif
