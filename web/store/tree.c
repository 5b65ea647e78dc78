/* tree.c: a recursive walk with one inotify watch a folder (none a file: idle files cost nothing). */
#include "web/store/tree.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/arena.h"
#include "web/store/map.h"

#define MAX_DEPTH 32
#define WATCH_MASK (IN_CREATE | IN_MOVED_TO | IN_MODIFY | IN_CLOSE_WRITE | IN_ONLYDIR)

struct tree {
	char root[PATH_MAX];
	int fd;
	bool watch_failed, overflow;
	struct map *folders; /* watch descriptor -> struct folder */
	struct map *seen;    /* (device, inode) of the folders of this walk */
	struct arena *names; /* paths of watched folders */
	tree_found *fn;
	void *arg;
	uint64_t folder_count;
};

struct folder {
	const char *path;
};

static bool is_run_file(const char *name)
{
	size_t n = strlen(name);

	return strstr(name, "tfevents") || (n > 8 && !strcmp(name + n - 8, ".journal"));
}

/* The store's own files beside the runs. */
static bool is_ours(const char *path)
{
	return !strcmp(path, "dptrack.artifacts") || !strncmp(path, "dptrack.db", 10);
}

static int join(char *to, size_t room, const char *folder, const char *name)
{
	return snprintf(to, room, "%s%s%s", folder, *folder ? "/" : "", name) >= (int)room ? -1 : 0;
}

static void watch(struct tree *t, const char *full, const char *path)
{
	struct folder *f;
	int wd;

	if (t->fd < 0)
		return;
	wd = inotify_add_watch(t->fd, full, WATCH_MASK);
	if (wd < 0) {
		t->watch_failed = t->watch_failed || errno == ENOSPC || errno == ENOMEM;
		return;
	}
	f = map_put(t->folders, &wd, sizeof wd);
	if (!f) {
		t->watch_failed = true;
		return;
	}
	if (!f->path || strcmp(f->path, path))
		f->path = arena_strdup(t->names, path);
}

static bool first_visit(struct tree *t, const struct stat *sb)
{
	uint64_t id[2] = { (uint64_t)sb->st_dev, (uint64_t)sb->st_ino };
	char *mark;

	if (map_get(t->seen, id, sizeof id))
		return false;
	mark = map_put(t->seen, id, sizeof id);
	return mark != NULL;
}

static int walk(struct tree *t, const char *path, int depth);

static void visit(struct tree *t, const char *path, int depth)
{
	char full[PATH_MAX];
	struct stat sb, link;

	if (is_ours(path) || join(full, sizeof full, t->root, path) || lstat(full, &link))
		return;
	sb = link;
	if (S_ISLNK(link.st_mode) && stat(full, &sb))
		return;
	if (S_ISDIR(sb.st_mode))
		walk(t, path, depth + 1);
	else if (S_ISREG(sb.st_mode))
		t->fn(t->arg, path, S_ISLNK(link.st_mode));
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int pick_entry(const struct dirent *e)
{
	if (e->d_name[0] == '.')
		return 0;
	return e->d_type == DT_DIR || e->d_type == DT_LNK || e->d_type == DT_UNKNOWN || is_run_file(e->d_name);
}

static void visit_entry(struct tree *t, const char *path, const struct dirent *e, int depth)
{
	char below[PATH_MAX];

	/* A link that is named like no run file may still lead to a folder. */
	if (join(below, sizeof below, path, e->d_name))
		return;
	if (!is_run_file(e->d_name) && e->d_type != DT_DIR) {
		char full[PATH_MAX];
		struct stat sb;

		if (join(full, sizeof full, t->root, below) || stat(full, &sb) || !S_ISDIR(sb.st_mode))
			return;
	}
	if (e->d_type == DT_REG && !is_ours(below))
		t->fn(t->arg, below, false);
	else
		visit(t, below, depth);
}

/* Watches a folder before it is listed: what is made in between is seen twice, never missed. */
static int walk(struct tree *t, const char *path, int depth)
{
	char full[PATH_MAX];
	struct dirent **entries;
	struct stat sb;
	int n, i;

	if (depth > MAX_DEPTH || (*path ? join(full, sizeof full, t->root, path) : join(full, sizeof full, t->root, ".")))
		return 0;
	if (stat(full, &sb) || !first_visit(t, &sb))
		return 0;
	watch(t, full, path);
	n = scandir(full, &entries, pick_entry, by_name);
	if (n < 0)
		return errno;
	t->folder_count++;
	for (i = 0; i < n; i++) {
		visit_entry(t, path, entries[i], depth);
		free(entries[i]);
	}
	free(entries);
	return 0;
}

int tree_open(struct tree **ret, const char *root, bool watch_it, tree_found *fn, void *arg, struct err *err)
{
	struct tree *t = calloc(1, sizeof *t);

	if (!t)
		return err_set(err, ERR_NOMEM, "out of memory");
	snprintf(t->root, sizeof t->root, "%s", root);
	t->fn = fn;
	t->arg = arg;
	t->fd = watch_it ? inotify_init1(IN_NONBLOCK | IN_CLOEXEC) : -1;
	t->watch_failed = t->fd < 0;
	t->folders = map_new(sizeof(struct folder));
	t->seen = map_new(1);
	t->names = arena_new();
	if (!t->folders || !t->seen || !t->names) {
		tree_close(t);
		return err_set(err, ERR_NOMEM, "out of memory");
	}
	*ret = t;
	return 0;
}

void tree_close(struct tree *t)
{
	if (!t)
		return;
	if (t->fd >= 0)
		close(t->fd);
	map_free(t->folders);
	map_free(t->seen);
	arena_free(t->names);
	free(t);
}

int tree_scan(struct tree *t, struct err *err)
{
	int rc;

	map_clear(t->seen);
	t->folder_count = 0;
	t->overflow = false;
	rc = walk(t, "", 0);
	map_clear(t->seen);
	return rc ? err_set_errno(err, rc, "reading %s", t->root) : 0;
}

static void handle(struct tree *t, const struct inotify_event *e)
{
	const struct folder *f = map_get(t->folders, &e->wd, sizeof e->wd);
	char path[PATH_MAX];

	if (e->mask & IN_Q_OVERFLOW)
		t->overflow = true;
	if (!f || !f->path || !e->len || e->name[0] == '.' || join(path, sizeof path, f->path, e->name) || is_ours(path))
		return;
	if (e->mask & IN_ISDIR || (!is_run_file(e->name) && e->mask & (IN_CREATE | IN_MOVED_TO))) {
		if (e->mask & IN_ISDIR || !strchr(e->name, '.'))
			visit(t, path, 0);
	} else if (is_run_file(e->name)) {
		if (e->mask & (IN_CREATE | IN_MOVED_TO))
			visit(t, path, 0);
		else
			t->fn(t->arg, path, false);
	}
}

int tree_events(struct tree *t, struct err *err)
{
	char room[16384] __attribute__((aligned(8)));
	ssize_t n, at;

	if (t->fd < 0)
		return 0;
	map_clear(t->seen);
	while ((n = read(t->fd, room, sizeof room)) > 0) {
		for (at = 0; at < n;) {
			const struct inotify_event *e = (const struct inotify_event *)(room + at);

			handle(t, e);
			at += (ssize_t)sizeof *e + e->len;
		}
	}
	/* Events were lost: everything is looked at once more. */
	return t->overflow ? tree_scan(t, err) : 0;
}

int tree_fd(const struct tree *t)
{
	return t->fd;
}

bool tree_watching(const struct tree *t)
{
	return t->fd >= 0 && !t->watch_failed;
}

uint64_t tree_folders(const struct tree *t)
{
	return t->folder_count;
}
