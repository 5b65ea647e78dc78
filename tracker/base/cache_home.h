/* cache_home.h: the folder of a user's caches, for data that can be computed again. */
#ifndef DPT_BASE_CACHE_HOME_H
#define DPT_BASE_CACHE_HOME_H

#include <stdbool.h>
#include <stddef.h>

/* The folder "dptrain" in $XDG_CACHE_HOME, else in ~/.cache. Creates it; path has room for 32 more bytes. Returns false
 * without a home folder, or if its name is too long. */
bool cache_home(char *path, size_t n);

#endif
