/* key.h: valid names of series, params, tags and environment entries. The library and the server use the same rule. */
#ifndef DPT_EVENT_KEY_H
#define DPT_EVENT_KEY_H

#include <stdbool.h>
#include <stddef.h>

/* Returns NULL if the key is valid, else what is wrong with it ("is empty", …). Valid: UTF-8, 1 to 250 characters, no
 * control characters. */
const char *key_check(const char *key, size_t len);

#define KEY_SHOWN_BYTES 96u

/* Copies the beginning of any key (NULL: ""), with control characters replaced, for a line of text. */
void key_show(char to[KEY_SHOWN_BYTES], const char *key);

#endif
