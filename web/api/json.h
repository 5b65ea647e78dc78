/* SPDX-License-Identifier: Apache-2.0 */
/* json.h: reads JSON with Jansson, within limits. "NaN", "Infinity" and "-Infinity" are numbers, too. */
#ifndef DPT_API_JSON_H
#define DPT_API_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "web/api/call.h"

enum json_kind { JSON_KIND_STRING, JSON_KIND_INT, JSON_KIND_DOUBLE, JSON_KIND_OBJECT, JSON_KIND_ARRAY, JSON_KIND_ANY };

/* One member that an object may have; into is const char **, int64_t *, double * or json_t ** (borrowed). */
struct json_field {
	const char *name;
	enum json_kind kind;
	bool required;
	void *into;
	bool *given; /* set when the member is present; may be NULL */
};

/* Parses the body as one JSON object, which the caller owns (json_decref). Returns NULL after failing the call. */
json_t *json_body(struct call *c);

/* Returns NULL, or why n bytes of JSON must not be parsed. Jansson uses up to 72 bytes of heap for a byte of text, so
 * depth and number of values are bounded before it runs. */
const char *json_too_much(const char *text, size_t n);

/* Reads the members of an object by table. An unknown, missing or mistyped member fails the call with its name. at is
 * the prefix of the name ("points[3]."), "" at the top. */
bool json_read(struct call *c, json_t *object, const char *at, const struct json_field *fields);

/* A number, or one of the three words. */
bool json_to_double(json_t *value, double *ret);

#endif
