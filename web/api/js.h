/* SPDX-License-Identifier: Apache-2.0 */
/* js.h: writes and reads JSON. Doubles are printed so that they read back bit for bit; non-finite ones become the
 * strings "NaN", "Infinity" and "-Infinity". */
#ifndef DPT_API_JS_H
#define DPT_API_JS_H

#include <jansson.h>

#include "web/api/call.h"

/* A writer; it adds the commas. Zero-initialize except for out. Inside an object each value follows its js_key. */
struct js {
	struct buf *out;
	bool comma;
};

void js_open(struct js *j, char bracket); /* '{' or '[' */
void js_close(struct js *j, char bracket);
void js_key(struct js *j, const char *key);
void js_str(struct js *j, const char *text);		/* NULL: null */
void js_strn(struct js *j, const char *text, size_t n); /* bytes that are not UTF-8 become U+FFFD */
void js_int(struct js *j, int64_t v);
void js_double(struct js *j, double v);
void js_number(struct js *j, double v); /* NaN, which means no value, becomes null */
void js_bool(struct js *j, bool v);
void js_null(struct js *j);
void js_raw(struct js *j, const char *json); /* one complete JSON value */

void js_key_open(struct js *j, const char *key, char bracket);
void js_key_bool(struct js *j, const char *key, bool v);
void js_key_str(struct js *j, const char *key, const char *text);
void js_key_int(struct js *j, const char *key, int64_t v);
void js_key_double(struct js *j, const char *key, double v);
void js_key_number(struct js *j, const char *key, double v);

/* Closes the object that is the reply. Returns CALL_DONE. */
enum call_next js_reply(struct call *c, struct js *j);

/* Prints the fewest digits that read back as v; -0.0; NaN, Infinity and -Infinity without quotes. */
#define JS_DOUBLE_MAX 32
size_t js_print_double(char *text, double v);

/* ---- json.c ----
 * Reads JSON with Jansson, within limits. "NaN", "Infinity" and "-Infinity" are numbers, too. */

enum json_kind {
	JSON_KIND_STRING,
	JSON_KIND_INT,
	JSON_KIND_DOUBLE,
	JSON_KIND_BOOL,
	JSON_KIND_OBJECT,
	JSON_KIND_ARRAY,
	JSON_KIND_ANY
};

/* One member that an object may have; into is const char **, int64_t *, double *, bool * or json_t ** (borrowed). */
struct json_field {
	const char *name;
	enum json_kind kind;
	bool required;
	void *into;
	bool *given; /* set when the member is present; may be NULL */
};

/* Parses the body as one JSON object, which the caller owns (json_decref). Returns NULL after failing the call. */
json_t *json_body(struct call *c);
/* As json_loadb; also accepts a byte order mark, and bare NaN and Infinity as Python writes them, which become strings.
 * e may be NULL. */
json_t *json_lenient(const char *text, size_t n, size_t flags, json_error_t *e);
const char *json_error_reason(const json_error_t *e); /* for the client, without the parser's terms */

/* Returns NULL, or why n bytes of JSON must not be parsed. Jansson uses up to 72 bytes of heap for a byte of text, so
 * depth and number of values are bounded before it runs. */
const char *json_too_much(const char *text, size_t n);

/* Reads the members of an object by table. An unknown, missing or mistyped member fails the call with its name. at is
 * the prefix of the name ("points[3]."), "" at the top. */
bool json_read(struct call *c, json_t *object, const char *at, const struct json_field *fields);

/* The same for the body, after call_args_done. What the fields borrow lives until the call ends. */
bool json_args(struct call *c, const struct json_field *fields);

/* A number, or one of the three words. */
bool json_to_double(json_t *value, double *ret);

#endif
