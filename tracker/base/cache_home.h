/* cache_home.h: where a user's programs keep what they could find out again. */
#ifndef DPT_BASE_CACHE_HOME_H
#define DPT_BASE_CACHE_HOME_H

#include <stdbool.h>
#include <stddef.h>

/* The folder "dptrain" in $XDG_CACHE_HOME, else in ~/.cache, made on the way; path has room for 32 bytes more.
 * false: there is no home, or its name is too long. */
bool cache_home(char *path, size_t n);

#endif
