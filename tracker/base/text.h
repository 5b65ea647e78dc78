/* SPDX-License-Identifier: Apache-2.0 */
/* text.h: small conversions between values and text: hex digits, base64, numbers; words in a text; parts of URLs. */
#ifndef DPT_BASE_TEXT_H
#define DPT_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* ---- hexadecimal ---- */

/* The value of a hex digit of either case; -1: not one. */
int text_hex_digit(char c);

/* Writes 2n lower-case digits and NUL; returns ret. */
char *text_hex(char *ret, const void *bytes, size_t n);

/* Reads n bytes from 2n digits. Returns false, with *ret partly written, if one of them is no digit. */
bool text_unhex(void *ret, const char *digits, size_t n);

/* Returns true if the text consists of lower-case hex digits, of min to max of them. NULL: false. */
bool text_is_hex(const char *text, size_t min, size_t max);

/* Draws n random bytes (at most 64) of the system's generator, as 2n lower-case digits and NUL. Returns 0, or -1 with
 * errno. */
int text_random_hex(char *ret, size_t n);

/* ---- base64 (RFC 4648) ---- */

/* Appends base64 with its padding, or, for URLs (section 5 of the RFC), with '-' and '_' and without padding. */
void text_add_base64(struct buf *to, const void *bytes, size_t n, bool url);

/* Decodes up to the padding or another character that is no digit. Returns the number of bytes; 0 if they are more than
 * max. */
size_t text_unbase64(char *ret, size_t max, const char *text);

/* ---- numbers ---- */

#define TEXT_DOUBLE_BYTES 32

/* Writes a double as printf's %g does, with the fewest significant digits from `digits` to 17 that read back as the
 * same double; "NaN", "Infinity" and "-Infinity". digits decides when an exponent appears: one million is 1e+06 with 6
 * and 1000000 with 15. Returns ret. */
char *text_double(char ret[TEXT_DOUBLE_BYTES], double v, int digits);

/* ---- times ---- */

/* Reads a date with an optional time and zone as ISO 8601 writes them ("2026-11-28", "2026-11-28T09:30:00.5+01:00";
 * without a zone it is UTC) as seconds since 1970. Returns false, with *ret_s undefined, for any other text. */
bool text_iso_time(const char *text, double *ret_s);

/* ---- words ---- */

/* Returns true if the text contains the word in any case; begins: at the beginning of a word. '-', '_' and ' ' are
 * equal. */
bool text_mentions(const char *text, const char *word, bool begins);

/* ---- secrets ---- */

/* Returns "(hidden)" for a value whose name has a word for secrets (api_key, password, token), else the value. A short
 * value, several words and <pad> are not secret, though the name says so. */
const char *text_hide_secret(const char *name, const char *value);

/* ---- URLs ---- */

/* Appends a text percent-encoded (RFC 3986), except for ASCII letters, digits and the characters of stays. */
void text_add_escaped(struct buf *to, const char *text, const char *stays);

/* Removes user and password from each https://user:password@host in the text, for any scheme, in place. */
void text_hide_credentials(char *text);

/* Returns true if a spreadsheet would evaluate the text as a formula (OWASP, CSV injection): it begins with = + - @, a
 * tab or a carriage return, and is no number. Writers of CSV put a ' before it. */
bool text_is_formula(const char *text);

#endif
