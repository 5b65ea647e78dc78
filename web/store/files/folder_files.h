/* folder_files.h: the files that lie in a run's own folder, below the one that is followed, beside its journals: weights,
 * checkpoints and whatever else was written there. Only looked at, never opened; nothing is kept of them. */
#ifndef DPT_STORE_FOLDER_FILES_H
#define DPT_STORE_FOLDER_FILES_H

#include "web/store/files/artifacts.h"

struct folder_files {
	const char *folder; /* the run's, below the followed one; NULL: no journal of it is a file here */
	struct artifact_entry *list; /* by name */
	size_t count;
};

#define FOLDER_FILES_MAX 10000 /* more of one folder are left out */

/* One level of the run's folder, or of path inside it ("": the run's own; else already checked by artifact_path_ok).
 * Journals and hidden files are left out. A folder that others made may hold anything: of it only what has a name as
 * weights have, and folders that are named like their place. What is missing holds nothing. ERR_NOENT: no such run. */
int folder_files_list(struct store *s, const char *run, const char *path, struct arena *a, struct folder_files *ret, struct err *err);

#endif
