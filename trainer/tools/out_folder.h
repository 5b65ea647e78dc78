/* SPDX-License-Identifier: Apache-2.0 */
/* out_folder.h: the folder that a command writes, which appears when it is complete. */
#ifndef DPT_TOOLS_OUT_FOLDER_H
#define DPT_TOOLS_OUT_FOLDER_H

#include "tracker/base/err.h"

#define OUT_FOLDER_BYTES 4100

/* Creates a temporary folder next to `out`, which may be an empty folder. ERR_USAGE if it is not: "use another folder
 * for WHAT". */
int out_folder_make(char ret[OUT_FOLDER_BYTES], const char *out, const char *what, struct err *err);

/* Syncs the folder and renames it to `out`. */
int out_folder_publish(const char *folder, const char *out, struct err *err);

void out_folder_remove(const char *folder); /* an incomplete one; "": none */

#endif
