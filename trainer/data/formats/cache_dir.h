/* cache_dir.h: the cache folder for what was derived from a data set: the set's .dptrain, or a folder in the user's
 * cache if the set's folder is read-only. */
#ifndef DPT_DATA_CACHE_DIR_H
#define DPT_DATA_CACHE_DIR_H

#include <stdbool.h>

#define CACHE_DIR_PATH_BYTES 4200

/* Joins folder/name. False: too long. */
bool cache_dir_join(char ret[CACHE_DIR_PATH_BYTES], const char *folder, const char *name);

/* Creates the set's .dptrain if needed. False: not writable. *ret is set in any case, except for paths that are too
 * long. */
bool cache_dir_beside(const char *path, char ret[CACHE_DIR_PATH_BYTES]);

/* Creates the set's folder in the user's cache: $XDG_CACHE_HOME/dptrain/<hash of the path>, or $HOME/.cache/… */
bool cache_dir_in_cache(const char *path, char ret[CACHE_DIR_PATH_BYTES]);

/* Waits for the exclusive lock of the folder. Close the descriptor to release it. Negative: cannot be locked
 * (errno). */
int cache_dir_lock(const char *folder);

#endif
