/* SPDX-License-Identifier: Apache-2.0 */
/* run_folders.h: names in a folder of runs, <experiment>/<name>-<8 digits of the id>, and the folder that
 * holds them. */
#ifndef DPT_BASE_RUN_FOLDERS_H
#define DPT_BASE_RUN_FOLDERS_H

#include <stdbool.h>

/* The folder of runs: as given, else DPTRACK_RUNS_DIR, else "runs". Borrowed. */
const char *run_folders_dir(const char *given);

/* The folder that a command line being completed names (--logdir, --runs-dir), else run_folders_dir's. The
 * last word may be incomplete. Borrowed from argv or the environment. */
const char *run_folders_named(int argc, char *const argv[]);

/* One folder below runs_dir. run: the folder of a run; NULL: only the experiment. id: the last 8 digits of run. */
struct run_folder_entry {
	const char *experiment, *run, *id;
};

/* Calls fn for each experiment (runs false), or for each run, in no order; stops where it returns false. A folder that
 * cannot be read has none. */
void run_folders_each(const char *runs_dir, bool runs, bool (*fn)(void *user, const struct run_folder_entry *e),
		      void *user);

#endif
