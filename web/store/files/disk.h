/* disk.h: artifacts as files below one folder; the alternative to objects.h. An upload writes a temporary file,
 * holding a lock on it, and renames it, so a file is complete or absent. The next process that opens the folder
 * removes files of killed uploads. Private to web/store/files. */
#ifndef DPT_STORE_DISK_H
#define DPT_STORE_DISK_H

#include "web/store/files/artifacts.h"

struct disk;
struct disk_receiving;
struct entries;

int disk_new(struct disk **ret, const char *root, struct err *err); /* does not access root yet */
void disk_free(struct disk *k); /* NULL is fine */
const char *disk_root(const struct disk *k);

int disk_find(struct disk *k, const char *path, struct artifact_file *ret, struct err *err); /* without its digest */
int disk_entries(struct disk *k, const char *path, struct entries *list, struct err *err);
int disk_remove(struct disk *k, const char *path, struct err *err);

/* --- uploads: see artifact_begin -------------------------------------------------------------------------- */

int disk_receiving_begin(struct disk_receiving **ret, struct disk *k, const char *path, struct err *err);
int disk_receiving_write(struct disk_receiving *u, const void *bytes, size_t n, struct err *err);
int disk_receiving_commit(struct disk_receiving *u, struct artifact_file *ret, struct err *err);
void disk_receiving_end(struct disk_receiving *u); /* NULL is fine */

#endif
