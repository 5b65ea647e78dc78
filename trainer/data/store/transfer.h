/* transfer.h: one request for a range of a remote object, by libcurl, and what its answer means. Knows neither blocks
 * nor threads: the caller owns the multi handle and its thread. */
#ifndef DPT_DATA_TRANSFER_H
#define DPT_DATA_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/curl/curlso.h"

#define TRANSFER_ETAG_BYTES 160
#define TRANSFER_TEXT_BYTES 1024

struct transfer_want {
	const char *url;     /* http:// or https:// */
	const char *etag;    /* "": not known yet */
	uint64_t begin, n;   /* bytes; n >= 1 */
	uint64_t total;	     /* of the object; 0: to be learnt */
	double stall_s;	     /* without a byte: given up */
	struct curl_slist *headers; /* borrowed until the end; NULL */
	bool follows;	     /* redirects */
	const char *ca;	     /* file of certificates to trust; NULL: the usual ones */
	char *to;	     /* n bytes */
	bool sums;	     /* what arrives */
};

enum transfer_end {
	TRANSFER_DONE,
	TRANSFER_AGAIN,	  /* the way there failed: the same may succeed soon */
	TRANSFER_BUSY,	  /* … and the server says that it has too much to do */
	TRANSFER_WRONG,	  /* an answer to another question: once may be an accident */
	TRANSFER_REFUSED, /* for good */
};

struct transfer {
	struct transfer_want want;
	void *easy;
	void *user; /* the caller's */
	uint64_t got;
	uint32_t sum; /* its CRC-32C, if wanted */
	bool too_long;
	/* of the answer */
	long status;
	char etag[TRANSFER_ETAG_BYTES];
	uint64_t begin, total;
	bool has_range;
	double retry_after_s;
	char modified[64]; /* Last-Modified; "" */
	char region[64]; /* that a bucket is said to lie in; "" */
	char text[TRANSFER_TEXT_BYTES]; /* of a refusal, its beginning */
	size_t text_n;
	char error[CURLSO_ERROR_BYTES];
};

/* Readies t->easy, which is the caller's and may have been used before. */
void transfer_begin(struct transfer *t, const struct curlso *so, const struct transfer_want *w);

/* What came of it; why (200 bytes) says what is wrong. */
enum transfer_end transfer_end(struct transfer *t, const struct curlso *so, int code, char why[200]);

#endif
