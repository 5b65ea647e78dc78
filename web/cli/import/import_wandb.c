/* SPDX-License-Identifier: Apache-2.0 */
/* import_wandb.c: finds W&B's offline runs in a folder. */

#include <sys/stat.h>

#include "tracker/base/file.h"
#include "web/cli/import/wandb_file.h"

static bool name_ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && !strcmp(name + n - m, end);
}

/* Reads one .wandb file; a damaged one is counted and skipped. */
static int read_wandb_file(struct importer *b, const char *path, struct map *sessions, struct err *err)
{
	struct wandb_file file = { .sessions = sessions };
	struct file_map map = { 0 };
	struct err why = ERR_INIT;
	char folder[4096], files[4200];
	struct stat st;
	int rc = importer_map(b, &map, path, &why);

	if (rc)
		return importer_skip(b, rc, &why, err);
	snprintf(folder, sizeof(folder), "%s", path);
	if (strrchr(folder, '/'))
		*strrchr(folder, '/') = 0;
	snprintf(files, sizeof(files), "%s/files", folder);
	file.bytes = map.bytes ? (const void *)map.bytes : "";
	file.n = map.n;
	file.files = !stat(files, &st) && S_ISDIR(st.st_mode) ? files : NULL;
	file.session = strrchr(folder, '/') ? strrchr(folder, '/') + 1 : folder;
	rc = wandb_take(b, &file, &why);
	file_map_close(&map);
	if (rc == ERR_CORRUPT) {
		importer_leave_out(b, "%s: %s", path, why.text);
		return 0;
	}
	return rc ? err_set(err, rc, "%s: %s", path, why.text) : 0;
}

/* A walk over a folder's .wandb files. */
struct wandb_walk {
	int (*fn)(void *arg, const char *path, struct err *err);
	void *arg;
	int depth;
};

static int visit_wandb_entry(void *arg, const char *path, const char *name, struct err *err)
{
	const struct wandb_walk *f = arg;
	struct wandb_walk below = { f->fn, f->arg, f->depth + 1 };

	if (name_ends_with(name, ".wandb"))
		return f->fn(f->arg, path, err);
	if (!f->depth && (!strncmp(name, "offline-run-", 12) || !strncmp(name, "run-", 4)))
		return folder_each(path, visit_wandb_entry, &below, err);
	return 0;
}

/* Calls fn for the .wandb files in the folder and in its subfolders that are runs; latest-run is a link to one of them.
 * A negative value is fn's. */
static int visit_wandb_files(const char *folder, int (*fn)(void *arg, const char *path, struct err *err), void *arg,
			     struct err *err)
{
	struct wandb_walk f = { fn, arg, 0 };

	return folder_each(folder, visit_wandb_entry, &f, err);
}

static int set_found_flag(void *arg, const char *path, struct err *err)
{
	(void)path;
	(void)err;
	*(bool *)arg = true;
	return 0;
}

bool wandb_is(const char *path)
{
	bool any = name_ends_with(path, ".wandb");

	visit_wandb_files(path, set_found_flag, &any, NULL);
	return any;
}

struct wandb_reader {
	struct importer *b;
	struct map *sessions;
};

static int read_found_file(void *arg, const char *path, struct err *err)
{
	struct wandb_reader *w = arg;

	return read_wandb_file(w->b, path, w->sessions, err);
}

int wandb_read(struct importer *b, const char *path, struct err *err)
{
	struct wandb_reader w = { b, map_new(sizeof(int)) };
	int rc;

	rc = name_ends_with(path, ".wandb") ? read_wandb_file(b, path, w.sessions, err)
					    : visit_wandb_files(path, read_found_file, &w, err);
	map_free(w.sessions);
	return rc;
}
