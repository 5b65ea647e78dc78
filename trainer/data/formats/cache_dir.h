/* cache_dir.h: where what was made of a set once is kept for the next opening: below its own .dptrain, or below the user's
 * cache where that cannot be written. */
#ifndef DPT_DATA_CACHE_DIR_H
#define DPT_DATA_CACHE_DIR_H

#include <stdbool.h>

#define CACHE_DIR_PATH_BYTES 4200

/* folder/name; false: too long. */
bool cache_dir_join(char ret[CACHE_DIR_PATH_BYTES], const char *folder, const char *name);

/* Makes the set's .dptrain unless it is there; false: it cannot be written. *ret is set either way, but for paths that
 * are too long. */
bool cache_dir_beside(const char *path, char ret[CACHE_DIR_PATH_BYTES]);

/* Makes the set's place in the user's cache: $XDG_CACHE_HOME/dptrain/<hash of the path>, $HOME/.cache/… */
bool cache_dir_in_cache(const char *path, char ret[CACHE_DIR_PATH_BYTES]);

/* Waits until nobody else makes something in the folder; close the descriptor to let them. Negative: it cannot be
 * locked (errno). */
int cache_dir_lock(const char *folder);

#endif
