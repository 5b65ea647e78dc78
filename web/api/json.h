/* json.h: JSON in: Jansson behind limits. "NaN", "Infinity" and "-Infinity" are numbers, too. */
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
	bool *given; /* NULL: nobody asks */
};

/* Parses the body as one JSON object. *ret is the caller's (json_decref); NULL after failing the call. */
json_t *json_body(struct call *c);

/* NULL, or why n bytes of JSON may not be parsed: Jansson spends up to 72 bytes of heap a byte of text, so depth and
 * number of values are bounded before it sees them. */
const char *json_too_much(const char *text, size_t n);

/* Reads an object's members by table; an unknown, missing or mistyped one fails the call with its name. at is put
 * before the name ("points[3]."), "" at the top. */
bool json_read(struct call *c, json_t *object, const char *at, const struct json_field *fields);

/* A number, or one of the three words. */
bool json_to_double(json_t *value, double *ret);

#endif
