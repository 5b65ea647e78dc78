/* SPDX-License-Identifier: Apache-2.0 */
/* run_folders.h: names in a folder of runs, <experiment>/<name>-<8 digits of the id>, for completion. */
#ifndef DPT_BASE_RUN_FOLDERS_H
#define DPT_BASE_RUN_FOLDERS_H

#include <stdbool.h>
#include <stddef.h>

/* One folder below runs_dir. run: the folder of a run; NULL: only the experiment. id: the last 8 digits of run. */
struct run_folder_entry {
	const char *experiment, *run, *id;
};

/* Calls fn for each experiment (runs false), or for each run, in no order; stops where it returns false. A folder that
 * cannot be read has none. */
void run_folders_each(const char *runs_dir, bool runs, bool (*fn)(void *user, const struct run_folder_entry *e),
		      void *user);

#endif
