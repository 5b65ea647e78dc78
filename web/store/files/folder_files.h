/* folder_files.h: lists files in the folder of a run below the followed folder, next to its journals: weights,
 * checkpoints and other output. Files are never opened, and nothing about them is stored. */
#ifndef DPT_STORE_FOLDER_FILES_H
#define DPT_STORE_FOLDER_FILES_H

#include "web/store/files/artifacts.h"

struct folder_files {
	const char *folder; /* of the run, below the followed folder; NULL: none of its journals is a file here */
	struct artifact_entry *list; /* by name */
	size_t count;
};

#define FOLDER_FILES_MAX 10000 /* most entries of one folder */

struct folder_files_place {
	const char *run, *path;
};

/* Lists one level: the run's folder, or path inside it ("": the run's folder; otherwise checked by
 * artifact_path_ok). Skips journals and hidden files. In a foreign run's folder it lists only files and folders
 * named like weights or checkpoints. A missing folder is empty. ERR_NOENT: no such run. */
int folder_files_list(struct store *s, const struct folder_files_place *p, struct arena *a, struct folder_files *ret,
		      struct err *err);

#endif
