/* import_folder.c: iterates over a folder, see import_folder.h. */
#include "web/cli/import/import_folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_dirents(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

int folder_each(const char *folder, folder_fn *fn, void *arg, struct err *err)
{
	struct dirent **names = NULL;
	int n = scandir(folder, &names, NULL, compare_dirents), rc = 0;
	char path[4096];

	for (int i = 0; i < n; i++) {
		const char *name = names[i]->d_name;

		snprintf(path, sizeof(path), "%.3800s/%s", folder, name);
		if (!rc && strcmp(name, ".") && strcmp(name, ".."))
			rc = fn(arg, path, name, err);
		free(names[i]);
	}
	free(names);
	return rc;
}
