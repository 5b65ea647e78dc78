/* SPDX-License-Identifier: Apache-2.0 */
/* curl_request.h: one HTTP request with libcurl. Here alone TLS, proxies, redirects, timeouts and limits are set, and
 * the headers of an answer are read; the users state what they send and where the answer's body goes. Only http:// and
 * https:// are accepted. */
#ifndef DPT_CURL_CURL_REQUEST_H
#define DPT_CURL_CURL_REQUEST_H

#include <stddef.h>
#include <time.h>

#include "tracker/curl/curlso.h"

#define CURL_ETAG_BYTES 160
#define CURL_GENERATION_BYTES 24

/* The headers of the last answer; texts are "" and numbers 0 where it has none. */
struct curl_answer {
	long status;
	char etag[CURL_ETAG_BYTES]; /* with quotes */
	char modified[64];	    /* Last-Modified */
	char generation[CURL_GENERATION_BYTES]; /* Google's number of the version */
	char region[64];			/* of the bucket */
	char extra[96];				/* the header that the request names */
	bool has_range;				/* Content-Range states the first byte, */
	uint64_t begin;
	uint64_t total; /* and the object's length; so does Content-Length of an answer with status 200 */
	double retry_after_s;
	time_t date;
};

/* All pointers are borrowed until the end of the request. */
struct curl_request {
	const char *url, *method;   /* method NULL: GET, or POST if there is a body */
	struct curl_slist *headers; /* lines; NULL: none */
	const void *body;	    /* NULL: none */
	size_t body_bytes;
	const char *range; /* "0-7"; NULL: everything */
	const char *agent, *extra_header;
	const char *ca;		   /* file of certificates to trust; NULL: the system's */
	double connect_s, stall_s; /* limits for the connection, and for a time without a byte; at least 1 s */
	bool follows;		   /* up to 5 redirects, and takes passwords from ~/.netrc */
	bool direct;		   /* without a proxy */
	bool trusting;		   /* accepts any certificate */
	bool bulk;		   /* large buffers: the other end wakes less often */
	/* Receives a part of the body, after the headers. Returns false to end the request. */
	bool (*receive)(void *user, const char *bytes, size_t n);
	bool (*stopped)(void *user); /* returns true to end the request with CURLSO_ABORTED; NULL: never */
	void *user;
	struct curl_answer answer;
	char error[CURLSO_ERROR_BYTES]; /* why there is no answer, or not all of it; "" */
};

/* Appends a header line. Returns false without memory; the list stays valid. */
bool curl_add_header(const struct curlso *so, struct curl_slist **list, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Sets all options of an easy handle, which may be reused and keeps its connections; clears the answer. */
void curl_request_begin(const struct curlso *so, void *easy, struct curl_request *r);

/* Completes the answer and the error after the handle's end with this code. */
void curl_request_end(const struct curlso *so, void *easy, int code, struct curl_request *r);

/* Sends the request and waits for its end. Returns libcurl's code. */
int curl_request_perform(const struct curlso *so, void *easy, struct curl_request *r);

/* Returns true if the server may answer the same request otherwise later: 408, 429 and 500 to 599. */
bool curl_may_pass(long status);

/* Computes the wait before a try after `failures` >= 1 failed ones: doubles from 0.1 to 10 s, with a jitter so that
 * many clients do not retry at the same time; at least what the server asked for, up to a minute. */
double curl_backoff_s(int failures, double retry_after_s, uint64_t draw);

#endif
