/* import_wandb.c: finds W&B's offline runs in a folder, and has each one's file read. */
#include "web/cli/import/import_wandb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tracker/base/file_map.h"
#include "web/cli/import/import_folder.h"
#include "web/cli/import/wandb_file.h"

static bool ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && !strcmp(name + n - m, end);
}

static int take_file(struct importer *b, const char *path, struct map *sessions, struct err *err)
{
	struct wandb_file file = { .sessions = sessions };
	struct file_map map = { 0 };
	struct err why = ERR_INIT;
	char folder[4096], files[4200];
	struct stat st;
	int rc = file_map_open(&map, path, err);

	if (rc)
		return rc;
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
struct files {
	int (*fn)(void *arg, const char *path, struct err *err);
	void *arg;
	int depth;
};

static int look_at_entry(void *arg, const char *path, const char *name, struct err *err)
{
	const struct files *f = arg;
	struct files below = { f->fn, f->arg, f->depth + 1 };

	if (ends_in(name, ".wandb"))
		return f->fn(f->arg, path, err);
	if (!f->depth && (!strncmp(name, "offline-run-", 12) || !strncmp(name, "run-", 4)))
		return folder_each(path, look_at_entry, &below, err);
	return 0;
}

/* Calls fn for the .wandb files in the folder, and in those of its folders that are a run's; latest-run is a link to
 * one of them. Negative: fn's. */
static int each_file(const char *folder, int (*fn)(void *arg, const char *path, struct err *err), void *arg,
		     struct err *err)
{
	struct files f = { fn, arg, 0 };

	return folder_each(folder, look_at_entry, &f, err);
}

static int found(void *arg, const char *path, struct err *err)
{
	(void)path;
	(void)err;
	*(bool *)arg = true;
	return 0;
}

bool wandb_is(const char *path)
{
	bool any = ends_in(path, ".wandb");

	each_file(path, found, &any, NULL);
	return any;
}

struct walk {
	struct importer *b;
	struct map *sessions;
};

static int take_found(void *arg, const char *path, struct err *err)
{
	struct walk *w = arg;

	return take_file(w->b, path, w->sessions, err);
}

int wandb_read(struct importer *b, const char *path, struct err *err)
{
	struct walk w = { b, map_new(sizeof(int)) };
	int rc;

	if (!w.sessions)
		return err_set(err, ERR_NOMEM, "out of memory");
	rc = ends_in(path, ".wandb") ? take_file(b, path, w.sessions, err) : each_file(path, take_found, &w, err);
	map_free(w.sessions);
	return rc;
}
