/* backup_rows.h: copies the rows of a database into a file. Private to web/store/maintenance. */
#ifndef DPT_STORE_BACKUP_ROWS_H
#define DPT_STORE_BACKUP_ROWS_H

#include "tracker/base/err.h"

struct store;

/* Writes everything acknowledged before the call, from one snapshot, to the empty file at path as a store. Files
 * that are objects stay objects. */
int backup_rows(struct store *s, const char *path, struct err *err);

#endif
