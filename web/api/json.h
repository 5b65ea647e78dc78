/* json.h: JSON out (straight into a buffer) and JSON in (Jansson behind limits).
 * Doubles are printed so that they read back bit for bit; non-finite ones are the strings "NaN", "Infinity" and
 * "-Infinity", which is also how they are read. */
#ifndef DPT_API_JSON_H
#define DPT_API_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/buf.h"
#include "web/api/call.h"

/* A writer: puts the commas. Zero it but for out. Values inside an object follow their js_key. */
struct js {
	struct buf *out;
	bool comma;
};

void js_open(struct js *j, char bracket); /* '{' or '[' */
void js_close(struct js *j, char bracket);
void js_key(struct js *j, const char *key);
void js_str(struct js *j, const char *text);           /* NULL: null */
void js_strn(struct js *j, const char *text, size_t n); /* bytes that are not UTF-8 become U+FFFD */
void js_int(struct js *j, int64_t v);
void js_double(struct js *j, double v);
void js_bool(struct js *j, bool v);
void js_null(struct js *j);
void js_raw(struct js *j, const char *json); /* one ready-made value */

void js_key_str(struct js *j, const char *key, const char *text);
void js_key_int(struct js *j, const char *key, int64_t v);
void js_key_double(struct js *j, const char *key, double v);

/* The fewest digits that read back as v; -0.0, and the words NaN, Infinity and -Infinity without quotes. */
#define JSON_DOUBLE_MAX 32
size_t json_print_double(char *text, double v);

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

/* NULL, or why n bytes of JSON may not be parsed: Jansson spends up to 72 bytes of heap a byte of text, so depth and number
 * of values are bounded before it sees them. */
const char *json_too_much(const char *text, size_t n);

/* Reads an object's members by table; an unknown, missing or mistyped one fails the call with its name. at is put
 * before the name ("points[3]."), "" at the top. */
bool json_read(struct call *c, json_t *object, const char *at, const struct json_field *fields);

/* A number, or one of the three words. */
bool json_to_double(json_t *value, double *ret);

#endif
