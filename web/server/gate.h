/* gate.h: the first look at a request: refuses what is malformed or could be read in two ways, before anything else
 * acts on it. The HTTP library below lets such requests through, so this is the only place that stops them.
 * Pure: no I/O, no allocation; any thread. */
#ifndef DPT_SERVER_GATE_H
#define DPT_SERVER_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "web/api/call.h"

#define GATE_TARGET_MAX 8192
#define GATE_HEADERS_MAX 100

struct gate_header {
	const char *name, *value;
	size_t name_len, value_len;
};

struct gate_request {
	const char *method, *target, *version;
	const struct gate_header *headers;
	size_t header_count;
	/* The target where the library keeps the head as it came, one line behind the other. NULL when the strings are
	 * copies, so that nothing can be said of the bytes between them. */
	const char *target_at;
};

enum gate_verb { VERB_METHOD, VERB_HEAD, VERB_OPTIONS };

struct gate_pass {
	enum gate_verb verb;
	enum call_method method; /* GET for HEAD */
	const char *host;        /* NULL: HTTP/1.0 without one */
	int64_t content_length;  /* -1: none named */
	bool chunked;
	bool gzip_body;
};

/* True with *ret filled, or false with *code and *why (one line) for the refusal, after which the connection must be
 * closed. */
bool gate_check(struct gate_pass *ret, const struct gate_request *req, enum call_error *code, const char **why);

/* Case-insensitive lookup among a request's headers; NULL when absent. */
const struct gate_header *gate_find(const struct gate_request *req, const char *name);

#endif
