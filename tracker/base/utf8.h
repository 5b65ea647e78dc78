/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h: checks UTF-8 and converts arbitrary bytes to it. */
#ifndef DPT_BASE_UTF8_H
#define DPT_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The length of the byte order mark that some programs write in front of a text: 3, or 0 without one. */
size_t utf8_mark(const char *text, size_t n);

/* Number of bytes of the well-formed character at p (n > 0 bytes left); 0 if malformed. */
size_t utf8_step(const unsigned char *p, size_t n);

/* Returns true for complete, shortest-form UTF-8 without surrogates. */
bool utf8_valid(const char *text, size_t len);

/* Number of bytes of the control character at s (n > 0 bytes left); 0: not one. Covers ASCII's and C1's, those that
 * change the direction of text, and the separators of lines and paragraphs. */
size_t utf8_control(const char *s, size_t n);

/* Copies at most cap - 1 bytes as one line that is safe in a log and on a terminal, even if strangers named what it
 * quotes: control characters become \xNN or \uNNNN, malformed bytes \xNN; characters are never cut. Returns the
 * length. */
size_t utf8_escape(char *to, size_t cap, const char *text);

/* Number of characters of valid UTF-8. */
size_t utf8_chars(const char *text);

/* Copies at most cap - 1 bytes of text as valid UTF-8 and terminates it with NUL; returns the length. Malformed bytes
 * become U+FFFD; characters are never cut. *ret_cut (may be NULL): true if text was omitted. */
size_t utf8_copy(char *to, size_t cap, const char *text, size_t len, bool *ret_cut);

#endif
