/* SPDX-License-Identifier: Apache-2.0 */
/* js.h: a JSON writer. Doubles are printed so that they read back bit for bit; non-finite ones become the strings
 * "NaN", "Infinity" and "-Infinity". */
#ifndef DPT_API_JS_H
#define DPT_API_JS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/buf.h"

/* A writer; it adds the commas. Zero-initialize except for out. Inside an object each value follows its js_key. */
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
void js_number(struct js *j, double v); /* NaN, which means no value, becomes null */
void js_bool(struct js *j, bool v);
void js_null(struct js *j);
void js_raw(struct js *j, const char *json); /* one complete JSON value */

void js_key_str(struct js *j, const char *key, const char *text);
void js_key_int(struct js *j, const char *key, int64_t v);
void js_key_double(struct js *j, const char *key, double v);
void js_key_number(struct js *j, const char *key, double v);

/* Prints the fewest digits that read back as v; -0.0; NaN, Infinity and -Infinity without quotes. */
#define JS_DOUBLE_MAX 32
size_t js_print_double(char *text, double v);

#endif
