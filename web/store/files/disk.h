/* disk.h: artifacts as files below one folder, the other side beside objects.h. Whoever uploads writes a temporary
 * file, locked as long as it lives, and renames it: a file is whole or not there, and what a killed process left is
 * removed by the next that opens the folder. Private to web/store/files. */
#ifndef DPT_STORE_DISK_H
#define DPT_STORE_DISK_H

#include "web/store/files/artifacts.h"

struct disk;
struct disk_receiving;
struct entries;

int disk_new(struct disk **ret, const char *root, struct err *err); /* touches nothing yet */
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
