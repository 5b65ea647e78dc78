/* import_folder.h: what lies in a folder, in an order that no locale changes. */
#ifndef DPT_CLI_BRING_IMPORT_FOLDER_H
#define DPT_CLI_BRING_IMPORT_FOLDER_H

#include "tracker/base/err.h"

/* path: of the entry; name: its last part. */
typedef int folder_fn(void *arg, const char *path, const char *name, struct err *err);

/* Calls fn for all that lies in the folder, by name, until one returns anything but 0: that is returned. A folder that
 * is not there is empty. */
int folder_each(const char *folder, folder_fn *fn, void *arg, struct err *err);

#endif
