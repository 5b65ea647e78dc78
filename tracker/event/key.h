/* key.h: what may name a series, param, tag or environment entry, and text hygiene. The same rule holds for the
 * library and for everything that the server takes in. */
#ifndef DPT_EVENT_KEY_H
#define DPT_EVENT_KEY_H

#include <stdbool.h>
#include <stddef.h>

/* NULL when the key is fine, else what is wrong with it ("is empty", …): valid UTF-8, 1 to 250 characters, none of
 * them a control character. */
const char *key_check(const char *key, size_t len);

/* Whole, shortest-form UTF-8 without surrogates. */
bool key_utf8_valid(const char *text, size_t len);

/* Copies at most cap - 1 bytes of text as valid UTF-8 (what is not becomes U+FFFD; never cuts a character) and ends it
 * with NUL; returns the length. *ret_cut (may be NULL) tells whether something was left out. */
size_t key_utf8_copy(char *to, size_t cap, const char *text, size_t len, bool *ret_cut);

#endif
