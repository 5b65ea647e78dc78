/* SPDX-License-Identifier: Apache-2.0 */
/* transfer.h: one request with libcurl for a range of a remote object, and the judgement of its response. Knows
 * neither blocks nor threads: the caller owns the multi handle and its thread. */
#ifndef DPT_DATA_TRANSFER_H
#define DPT_DATA_TRANSFER_H

#include "tracker/curl/curl_request.h"

#define TRANSFER_TEXT_BYTES 1024

struct transfer_want {
	const char *url;	    /* http:// or https:// */
	const char *etag;	    /* "": unknown */
	uint64_t begin, n;	    /* bytes; n >= 1 */
	uint64_t total;		    /* of the object; 0: unknown */
	double stall_s;		    /* longest time without a byte */
	double left_s;		    /* until the reader gives up */
	struct curl_slist *headers; /* borrowed until the end; NULL: none */
	bool follows;		    /* follows redirects */
	const char *ca;		    /* CA bundle; NULL: the default */
	bool peer;		    /* to a node of the job: the URL names the range; no proxy */
	char *to;		    /* n bytes */
	bool sums;		    /* computes the CRC-32C */
};

enum transfer_end {
	TRANSFER_DONE,
	TRANSFER_AGAIN,	  /* network failure: a retry may succeed */
	TRANSFER_BUSY,	  /* … the server is overloaded */
	TRANSFER_WRONG,	  /* a response to another request: may be an accident once */
	TRANSFER_REFUSED, /* permanent */
};

struct transfer {
	struct transfer_want want;
	void *easy;
	void *user; /* for the caller */
	uint64_t got;
	uint32_t sum; /* CRC-32C of the bytes, if want.sums */
	bool too_long;
	struct curl_request curl;
	char text[TRANSFER_TEXT_BYTES]; /* beginning of an error response */
	size_t text_n;
};

/* Prepares t->easy, which the caller owns and may reuse. */
void transfer_begin(struct transfer *t, const struct curlso *so, const struct transfer_want *w);

/* Completes the finished transfer. True: the whole response arrived; else t->curl.error has the cause. */
bool transfer_answered(struct transfer *t, const struct curlso *so, int code);

/* Completes and judges the finished transfer. why (200 bytes): the cause of a failure. */
enum transfer_end transfer_end(struct transfer *t, const struct curlso *so, int code, char why[200]);

#endif
