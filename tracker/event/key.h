/* key.h: what may name a series, param, tag or environment entry. The same rule holds for the library
 * and for everything that the server takes in. */
#ifndef DPT_EVENT_KEY_H
#define DPT_EVENT_KEY_H

#include <stdbool.h>
#include <stddef.h>

/* NULL when the key is fine, else what is wrong with it ("is empty", …): valid UTF-8, 1 to 250 characters, none of
 * them a control character. */
const char *key_check(const char *key, size_t len);

#define KEY_SHOWN_BYTES 96u

/* The beginning of a key that may hold anything (NULL: ""), fit for a line of text. */
void key_show(char to[KEY_SHOWN_BYTES], const char *key);

#endif
