/* SPDX-License-Identifier: Apache-2.0 */
/* folder_files.c: which folder belongs to a run, and which of its files are listed. */

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/sha256.h"
#include "web/store/base/beneath.h"
#include "web/store/base/parts.h"
#include "web/store/db/db.h"
#include "web/store/files/files.h"

static const char *parent_folder(struct arena *a, const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? arena_printf(a, "%.*s", (int)(slash - path), path) : ".";
}

/* The id of a foreign run is the digest of its folder. */
static bool is_foreign(const char *run, const char *folder)
{
	char hex[65];

	sha256_hex(folder, strlen(folder), hex);
	return !memcmp(hex, run, 32);
}

/* Finds the folder of its journals: of several, the one whose digest is the run id, else the first. */
static int query_run_folder(struct store *s, const char *run, struct arena *a, const char **ret, struct err *err)
{
	const char *folder;
	struct db_rows *q;
	struct db *d;
	int64_t id;
	int rc = readers_take_run(s, &d, run, &id, err);

	if (rc)
		return rc;
	*ret = NULL;
	rc = db_start(d, &q, DB_paths_of_run, err, "i", id);
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0) {
		folder = parent_folder(a, db_str(q, COL_paths_of_run_path));
		if (!*ret || is_foreign(run, folder))
			*ret = folder;
	}
	readers_give(s, d);
	return rc;
}

static bool has_any_word(const char *name, const char *const *words)
{
	while (*words && !strcasestr(name, *words))
		words++;
	return *words != NULL;
}

static bool has_any_suffix(const char *name, const char *const *ends)
{
	size_t n = strlen(name);

	while (*ends && (n < strlen(*ends) || strcasecmp(name + n - strlen(*ends), *ends)))
		ends++;
	return *ends != NULL;
}

/* Names that training programs use for weights and checkpoints. */
static bool looks_like_weights(const char *name, bool folder)
{
	static const char *const places[] = { "checkpoint", "ckpt", "weights", "model", NULL };
	static const char *const weights[] = { ".safetensors", ".pt",  ".pth",	".ckpt", ".bin",     ".h5", ".keras",
					       ".onnx",	       ".npz", ".gguf", ".pkl",	 ".weights", NULL };

	return folder ? has_any_word(name, places) : has_any_suffix(name, weights);
}

static bool is_shown_file(const char *name, bool folder, bool foreign)
{
	static const char *const not_files[] = { "lock", NULL };

	if (name[0] == '.' || (!folder && (strstr(name, "tfevents") || has_any_suffix(name, not_files))))
		return false;
	return foreign ? looks_like_weights(name, folder) : folder || !strstr(name, ".journal");
}

static void list_run_folder(int fd, bool foreign, struct entries *list)
{
	DIR *dir = fdopendir(fd);
	struct dirent *e;
	struct stat st;

	if (!dir) {
		close(fd);
		return;
	}
	while (list->n < FOLDER_FILES_MAX && (e = readdir(dir))) {
		if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) ||
		    !is_shown_file(e->d_name, S_ISDIR(st.st_mode), foreign))
			continue;
		entries_add(list, (struct artifact_entry){ arena_strdup(list->arena, e->d_name), S_ISDIR(st.st_mode),
							   (uint64_t)st.st_size, NULL });
	}
	closedir(dir);
}

/* Opens without following symbolic links. -1: not there. */
static int open_listed_folder(const char *root, const char *folder, const char *path, struct arena *a)
{
	int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), parent, fd = -1;
	const char *whole = *path ? arena_printf(a, "%s/%s", folder, path) : folder, *name;

	if (whole && !strncmp(whole, "./", 2))
		whole += 2;
	if (root_fd >= 0 && whole) {
		parent = beneath_parent(root_fd, whole, false, &name);
		if (parent >= 0) {
			fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			close(parent);
		}
	}
	if (root_fd >= 0)
		close(root_fd);
	return fd;
}

/* Returns true if every folder of the path is listed. */
static bool may_enter_folder(const char *path, bool foreign)
{
	char name[NAME_MAX + 1];
	size_t n;

	for (; *path; path += n + (path[n] == '/')) {
		n = strcspn(path, "/");
		if (n >= sizeof(name))
			return false;
		snprintf(name, sizeof(name), "%.*s", (int)n, path);
		if (!is_shown_file(name, true, foreign))
			return false;
	}
	return true;
}

int folder_files_list(struct store *s, const struct folder_files_place *p, struct arena *a, struct folder_files *ret,
		      struct err *err)
{
	struct entries list = { .arena = a };
	bool foreign;
	int rc, fd;

	*ret = (struct folder_files){ 0 };
	rc = query_run_folder(s, p->run, a, &ret->folder, err);
	if (rc || !ret->folder || !*s->logdir)
		return rc;
	foreign = is_foreign(p->run, ret->folder);
	fd = may_enter_folder(p->path, foreign) ? open_listed_folder(s->logdir, ret->folder, p->path, a) : -1;
	if (fd >= 0)
		list_run_folder(fd, foreign, &list);
	entries_sort(&list);
	ret->list = list.list;
	ret->count = list.n;
	return 0;
}
