/* utf8.h: whether bytes are text, and text made of whatever came. */
#ifndef DPT_BASE_UTF8_H
#define DPT_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the well-formed character at p (n > 0 bytes left), 0 when it is malformed. */
size_t utf8_step(const unsigned char *p, size_t n);

/* Whole, shortest-form UTF-8 without surrogates. */
bool utf8_valid(const char *text, size_t len);

/* Characters of valid UTF-8. */
size_t utf8_chars(const char *text);

/* Copies at most cap - 1 bytes of text as valid UTF-8 (what is not becomes U+FFFD; never cuts a character) and ends it
 * with NUL; returns the length. *ret_cut (may be NULL) tells whether something was left out. */
size_t utf8_copy(char *to, size_t cap, const char *text, size_t len, bool *ret_cut);

#endif
