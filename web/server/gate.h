/* SPDX-License-Identifier: Apache-2.0 */
/* gate.h: the first check of a request. Refuses malformed and ambiguous requests before anything else acts on them.
 * libmicrohttpd accepts such requests, so this is the only place that stops them. No I/O, no allocation; any thread. */
#ifndef DPT_SERVER_GATE_H
#define DPT_SERVER_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "web/api/call.h"

#define GATE_TARGET_MAX 16384 /* MLflow's clients ask for 1,000 runs at once */
#define GATE_HEADERS_MAX 100

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
	const char *host;        /* NULL: HTTP/1.0 without one */
	int64_t content_length;  /* -1: absent */
	bool chunked;
	bool gzip_body;
};

/* Returns true with *ret filled, or false with *code and *why (one line). After a refusal the connection must be
 * closed. */
bool gate_check(struct gate_pass *ret, const struct gate_request *req, enum call_error *code, const char **why);

/* Case-insensitive lookup among a request's headers; NULL when absent. */
const struct gate_header *gate_find(const struct gate_request *req, const char *name);

#endif
