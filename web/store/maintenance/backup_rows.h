/* backup_rows.h: the rows of a store in a database as a file. Private to web/store/maintenance. */
#ifndef DPT_STORE_BACKUP_ROWS_H
#define DPT_STORE_BACKUP_ROWS_H

#include "tracker/base/err.h"

struct store;

/* Everything that was acknowledged before the call, from one snapshot, as a store in the empty file at path. Files that
 * are objects stay the objects that the rows name. */
int backup_rows(struct store *s, const char *path, struct err *err);

#endif
