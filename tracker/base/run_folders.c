/* SPDX-License-Identifier: Apache-2.0 */
/* run_folders.c: finds the folder of runs, and lists experiments and runs in it without opening a journal. */
#include "tracker/base/run_folders.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/file.h"
#include "tracker/base/text.h"

enum { ID_DIGITS = 8 };

const char *run_folders_dir(const char *given)
{
	const char *variable = getenv("DPTRACK_RUNS_DIR");

	if (given)
		return given;
	return variable && *variable ? variable : "runs";
}

const char *run_folders_named(int argc, char *const argv[])
{
	static const char *const names[] = { "--logdir", "--runs-dir" };

	for (int i = 0; i + 1 < argc; i++)
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
			const size_t n = strlen(names[k]);

			if (!strcmp(argv[i], names[k]) && i + 2 < argc)
				return argv[i + 1];
			if (!strncmp(argv[i], names[k], n) && argv[i][n] == '=')
				return argv[i] + n + 1;
		}
	return run_folders_dir(NULL);
}

/* Reads the next name that is a folder or may be one; NULL: the end. */
static const char *read_folder_name(DIR *d)
{
	const struct dirent *e;

	while ((e = readdir(d)))
		if (e->d_name[0] != '.' && (e->d_type == DT_DIR || e->d_type == DT_LNK || e->d_type == DT_UNKNOWN))
			return e->d_name;
	return NULL;
}

/* Returns the id at the end of a run's folder; NULL: it is no such folder. */
static const char *find_folder_id(const char *name)
{
	const char *dash = strrchr(name, '-');

	return dash && text_is_hex(dash + 1, ID_DIGITS, ID_DIGITS) ? dash + 1 : NULL;
}

void run_folders_each(const char *runs_dir, bool runs, bool (*fn)(void *user, const struct run_folder_entry *e),
		      void *user)
{
	DIR *top = opendir(runs_dir), *inner;
	const char *experiment, *name;
	char path[PATH_MAX];
	bool more = true;

	while (top && more && (experiment = read_folder_name(top))) {
		if (!runs) {
			more = fn(user, &(struct run_folder_entry){ .experiment = experiment });
			continue;
		}
		inner = file_join(path, sizeof(path), runs_dir, experiment) ? opendir(path) : NULL;
		while (inner && more && (name = read_folder_name(inner)))
			if (find_folder_id(name))
				more = fn(user, &(struct run_folder_entry){ experiment, name, find_folder_id(name) });
		if (inner)
			closedir(inner);
	}
	if (top)
		closedir(top);
}
