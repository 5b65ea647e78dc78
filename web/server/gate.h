/* SPDX-License-Identifier: Apache-2.0 */
/* gate.h: the first check of a request. Refuses malformed and ambiguous requests before anything else acts on them.
 * libmicrohttpd accepts such requests, so this is the only place that stops them. No I/O, no allocation; any thread. */
#ifndef DPT_SERVER_GATE_H
#define DPT_SERVER_GATE_H

#include "web/api/call.h"

#define GATE_TARGET_MAX 49152 /* MLflow's clients name 1,000 runs in one */
#define GATE_HEADERS_MAX 100
#define GATE_FIELDS_MAX 32768
#define GATE_HEAD_BYTES 65536 /* the library's memory of a connection */

struct gate_header {
	const char *name, *value;
	size_t name_len, value_len;
};

struct gate_request {
	const char *method, *target, *version;
	const struct gate_header *headers;
	size_t header_count;
	/* The target in the library's buffer, where the head is stored as it arrived, line after line. NULL when the
	 * strings are copies, so that the bytes between them are unknown. */
	const char *target_at;
};

enum gate_verb { VERB_METHOD, VERB_HEAD, VERB_OPTIONS };

struct gate_pass {
	enum gate_verb verb;
	enum call_method method; /* GET for HEAD */
	const char *host;	 /* NULL: HTTP/1.0 without one */
	int64_t content_length;	 /* -1: absent */
	bool chunked;
	bool gzip_body;
};

/* Returns true with *ret filled, or false with *code and *why (one line). After a refusal the connection must be
 * closed. */
bool gate_check(struct gate_pass *ret, const struct gate_request *req, enum call_error *code, const char **why);

/* Case-insensitive lookup among a request's headers; NULL when absent. */
const struct gate_header *gate_find(const struct gate_request *req, const char *name);

bool gate_is_token(const char *s, size_t n); /* the name of a field (RFC 9110, 5.6.2) */
bool gate_is_text(char ch);		     /* may occur in the value of a field */

/* ---- router.c ----
 * Maps the address of a request to its route, path variables and query arguments. The one place that decodes
 * percent-encoding, once. Pure but for the arena; any thread. */

struct router_match {
	const struct route *route; /* NULL: the address exists for other methods only */
	unsigned methods;	   /* bit for each enum call_method that the address supports */
	enum call_error code;	   /* set when router_find returns false */
	const char *why;
};

/* Splits and decodes target (path?query), finds its route and fills c->address. Returns false with code and why
 * if there is no such address, or it cannot be decoded. */
bool router_find(struct router_match *ret, struct call *c, enum call_method method, const char *target);

/* "GET, HEAD, OPTIONS, POST" for the bits of router_match.methods; text has room for 64 bytes. */
void router_allow(unsigned methods, char *text);

#endif
