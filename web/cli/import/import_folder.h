/* import_folder.h: iterates over the entries of a folder, in an order that does not depend on the locale. */
#ifndef DPT_CLI_BRING_IMPORT_FOLDER_H
#define DPT_CLI_BRING_IMPORT_FOLDER_H

#include "tracker/base/err.h"

/* path: of the entry; name: its last component. */
typedef int folder_fn(void *arg, const char *path, const char *name, struct err *err);

/* Calls fn for all entries of the folder, by name, until one returns non-zero, which is then returned. A missing folder
 * counts as empty. */
int folder_each(const char *folder, folder_fn *fn, void *arg, struct err *err);

#endif
