/* keep.h: where what was made of a set once is kept for the next opening: below its own .dptrain, or below the user's
 * cache where that cannot be written. */
#ifndef DPT_DATA_KEEP_H
#define DPT_DATA_KEEP_H

#include <stdbool.h>

#define KEEP_PATH_BYTES 4200

/* folder/name; false: too long. */
bool keep_join(char ret[KEEP_PATH_BYTES], const char *folder, const char *name);

/* Makes the set's .dptrain unless it is there; false: it cannot be written. *ret is set either way, but for paths that
 * are too long. */
bool keep_beside(const char *path, char ret[KEEP_PATH_BYTES]);

/* Makes the set's place in the user's cache: $XDG_CACHE_HOME/dptrain/<hash of the path>, $HOME/.cache/… */
bool keep_in_cache(const char *path, char ret[KEEP_PATH_BYTES]);

/* Waits until nobody else makes something in the folder; close the descriptor to let them. Negative: it cannot be
 * locked (errno). */
int keep_lock(const char *folder);

#endif
