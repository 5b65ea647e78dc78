/* SPDX-License-Identifier: Apache-2.0 */
/* folder_tree.c: scans with one inotify watch per folder (none per file, so idle files cost nothing). A folder is
 * watched as soon as it is found, long before a large scan lists it, so its changes are noticed from then on. */
#include "web/store/follow/folder_tree.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/mem/mem.h"
#include "web/store/base/map.h"

#define WATCH_MASK (IN_CREATE | IN_MOVED_TO | IN_MODIFY | IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR)

/* A folder to list. */
struct pending {
	int64_t time_ns; /* time of its last change */
	uint64_t number; /* orders equal times: the first found comes first */
	const char *path;
	int depth;
};

struct tree_entry {
	const char *path, *name; /* name: the end of path */
	ino_t inode;
	bool folder; /* false: a file, or only stat tells */
	struct tree_entry *next;
};

struct follow_walk {
	struct pending *heap;
	size_t count, cap;
	uint64_t number;
	struct map *seen;    /* (device, inode) of folders, because links may form cycles */
	struct arena *paths; /* until the scan ends */
	DIR *dir;	     /* the folder being listed; NULL: none */
	int depth;	     /* depth of that folder */
	struct tree_entry **entries;
	size_t entry_count, entry_at;
};

struct tree {
	char root[PATH_MAX];
	int fd;
	bool watch_failed, overflow;
	struct map *folders; /* watch descriptor -> struct tree_folder */
	struct arena *names; /* paths of watched folders */
	struct follow_walk scan, news;
	tree_found *fn;
	void *arg;
	uint64_t folder_count;
	int root_errno; /* why the root could not be read */
};

struct tree_folder {
	const char *path;
};

static int64_t stat_time_ns(const struct stat *sb)
{
	return (int64_t)sb->st_mtim.tv_sec * 1000000000 + sb->st_mtim.tv_nsec;
}

static bool is_run_file(const char *name)
{
	size_t n = strlen(name);

	return strstr(name, "tfevents") || (n > 8 && !strcmp(name + n - 8, ".journal"));
}

/* Files of the store next to the runs. */
static bool is_store_file(const char *path)
{
	return !strcmp(path, "dptrack.artifacts") || !strncmp(path, "dptrack.db", 10);
}

static int join_tree_path(char *to, size_t room, const char *folder, const char *name)
{
	return snprintf(to, room, "%s%s%s", folder, *folder ? "/" : "", name) >= (int)room ? -1 : 0;
}

static int full_path(const struct tree *t, const char *path, char ret[PATH_MAX])
{
	return join_tree_path(ret, PATH_MAX, t->root, *path ? path : ".");
}

static void watch_folder(struct tree *t, const char *path)
{
	char full[PATH_MAX];
	struct tree_folder *f;
	int wd;

	if (t->fd < 0 || full_path(t, path, full))
		return;
	wd = inotify_add_watch(t->fd, full, WATCH_MASK);
	if (wd < 0) {
		t->watch_failed = t->watch_failed || errno == ENOSPC || errno == ENOMEM;
		return;
	}
	f = map_put(t->folders, &wd, sizeof(wd));
	if (!f->path || strcmp(f->path, path))
		f->path = arena_strdup(t->names, path);
}

/* --- pending folders ------------------------------------------------------------------------------------------ */

/* Level by level, so that all folders are watched before the many at the bottom are listed. */
static bool comes_before(const struct pending *a, const struct pending *b)
{
	if (a->depth != b->depth)
		return a->depth < b->depth;
	return a->time_ns != b->time_ns ? a->time_ns > b->time_ns : a->number < b->number;
}

static void heap_push(struct follow_walk *w, struct pending p)
{
	size_t at = w->count;

	mem_reserve(&w->heap, &w->cap, w->count + 1);
	w->count++;
	p.number = w->number++;
	for (; at && comes_before(&p, &w->heap[(at - 1) / 2]); at = (at - 1) / 2)
		w->heap[at] = w->heap[(at - 1) / 2];
	w->heap[at] = p;
}

static struct pending heap_pop(struct follow_walk *w)
{
	struct pending top = w->heap[0], last = w->heap[--w->count];
	size_t at = 0, below;

	while ((below = 2 * at + 1) < w->count) {
		below += below + 1 < w->count && comes_before(&w->heap[below + 1], &w->heap[below]);
		if (!comes_before(&w->heap[below], &last))
			break;
		w->heap[at] = w->heap[below];
		at = below;
	}
	w->heap[at] = last;
	return top;
}

static void walk_clear(struct follow_walk *w)
{
	if (w->dir)
		closedir(w->dir);
	arena_free(w->paths);
	map_free(w->seen);
	free(w->heap);
	*w = (struct follow_walk){ 0 };
}

static void walk_ready(struct follow_walk *w)
{
	w->paths = w->paths ? w->paths : arena_new();
	w->seen = w->seen ? w->seen : map_new(1);
}

/* Watches the folder before it is listed: what is created in between is found twice, never missed. Each folder once
 * per scan; path is in its arena. */
static void walk_add(struct tree *t, struct follow_walk *w, const char *path, const struct stat *sb, int depth)
{
	uint64_t id[2] = { (uint64_t)sb->st_dev, (uint64_t)sb->st_ino };

	if (map_get(w->seen, id, sizeof(id)))
		return;
	map_put(w->seen, id, sizeof(id));
	watch_folder(t, path);
	heap_push(w, (struct pending){ .time_ns = stat_time_ns(sb), .path = path, .depth = depth });
}

/* --- scanning ------------------------------------------------------------------------------------------------- */

static bool is_wanted_entry(const struct dirent *e)
{
	if (e->d_name[0] == '.')
		return false;
	return e->d_type == DT_DIR || e->d_type == DT_LNK || e->d_type == DT_UNKNOWN || is_run_file(e->d_name);
}

/* Files by name, then folders by inode. */
static int compare_entry_places(const void *x, const void *y)
{
	const struct tree_entry *a = *(const struct tree_entry *const *)x, *b = *(const struct tree_entry *const *)y;

	if (a->folder != b->folder)
		return a->folder ? 1 : -1;
	if (a->folder && a->inode != b->inode)
		return a->inode < b->inode ? -1 : 1;
	return strcmp(a->path, b->path);
}

/* Reports a file, or adds a folder to the pending ones. */
static void visit_entry(struct tree *t, struct follow_walk *w, const struct tree_entry *e)
{
	int folder_fd = dirfd(w->dir);
	struct stat sb, target;

	if (is_store_file(e->path) || fstatat(folder_fd, e->name, &sb, AT_SYMLINK_NOFOLLOW))
		return;
	target = sb;
	if (S_ISLNK(sb.st_mode) && fstatat(folder_fd, e->name, &target, 0))
		return;
	if (S_ISDIR(target.st_mode))
		walk_add(t, w, e->path, &target, w->depth + 1);
	else if (S_ISREG(target.st_mode) && is_run_file(e->name))
		t->fn(t->arg, &(struct tree_file){ .path = e->path, .bytes = target.st_size,
						   .time_s = target.st_mtim.tv_sec, .inode = target.st_ino,
						   .time_ns = stat_time_ns(&target),
						   .linked = S_ISLNK(sb.st_mode), .scanned = w == &t->scan });
}

/* Reads and sorts the entries of the open folder. */
static void list_entries(struct follow_walk *w, const char *path)
{
	struct tree_entry *first = NULL, *e;
	struct dirent *found;
	size_t n = 0;

	while ((found = readdir(w->dir))) {
		if (!is_wanted_entry(found))
			continue;
		e = arena_alloc(w->paths, sizeof(*e));
		e->path = *path ? arena_printf(w->paths, "%s/%s", path, found->d_name)
				: arena_strdup(w->paths, found->d_name);
		e->name = e->path + (*path ? strlen(path) + 1 : 0);
		e->inode = found->d_ino;
		e->folder = found->d_type == DT_DIR;
		e->next = first;
		first = e;
		n++;
	}
	w->entries = arena_array(w->paths, n + 1, sizeof(struct tree_entry *));
	for (w->entry_count = 0; first; first = first->next)
		w->entries[w->entry_count++] = first;
	qsort(w->entries, n, sizeof(struct tree_entry *), compare_entry_places);
}

static void open_walk_folder(struct tree *t, struct follow_walk *w, const struct pending *p)
{
	char full[PATH_MAX];

	w->entry_at = w->entry_count = 0;
	w->depth = p->depth;
	w->dir = full_path(t, p->path, full) ? NULL : opendir(full);
	if (!w->dir && !*p->path)
		t->root_errno = errno;
	else if (!w->dir && errno != ENOENT)
		t->fn(t->arg, &(struct tree_file){ .path = p->path, .bytes = -1, .denied = errno });
	if (!w->dir)
		return;
	t->folder_count += w == &t->scan;
	list_entries(w, p->path);
}

/* 1: there is more. */
static int walk_some(struct tree *t, struct follow_walk *w, double until_s)
{
	struct pending p;

	while (w->count || w->dir) {
		if (w->dir && w->entry_at < w->entry_count) {
			visit_entry(t, w, w->entries[w->entry_at++]);
		} else if (w->dir) {
			closedir(w->dir);
			w->dir = NULL;
			continue;
		} else {
			p = heap_pop(w);
			open_walk_folder(t, w, &p);
		}
		if (clock_mono_s() >= until_s)
			return 1;
	}
	walk_clear(w);
	return 0;
}

struct tree *tree_open(const struct tree_opts *o)
{
	struct tree *t = mem_zalloc(sizeof(*t));

	snprintf(t->root, sizeof(t->root), "%s", o->root);
	t->fn = o->fn;
	t->arg = o->arg;
	t->fd = o->watch ? inotify_init1(IN_NONBLOCK | IN_CLOEXEC) : -1;
	t->watch_failed = t->fd < 0;
	t->folders = map_new(sizeof(struct tree_folder));
	t->names = arena_new();
	return t;
}

void tree_close(struct tree *t)
{
	if (!t)
		return;
	if (t->fd >= 0)
		close(t->fd);
	walk_clear(&t->scan);
	walk_clear(&t->news);
	map_free(t->folders);
	arena_free(t->names);
	free(t);
}

void tree_watch_file(struct tree *t, const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 0, path);
	watch_folder(t, folder);
}

void tree_scan_begin(struct tree *t)
{
	struct stat sb;

	walk_clear(&t->scan);
	t->folder_count = 0;
	t->overflow = false;
	walk_ready(&t->scan);
	t->root_errno = stat(t->root, &sb) ? errno : 0;
	if (!t->root_errno)
		walk_add(t, &t->scan, "", &sb, 0);
}

int tree_step(struct tree *t, double for_s, struct err *err)
{
	double until_s = clock_mono_s() + for_s;
	int left = walk_some(t, &t->news, until_s), why;

	if (!left)
		left = walk_some(t, &t->scan, until_s);
	why = t->root_errno;
	if (left || !why)
		return left;
	t->root_errno = 0;
	return err_set_errno(err, why, "cannot read %s", t->root);
}

int tree_scan(struct tree *t, struct err *err)
{
	int rc;

	tree_scan_begin(t);
	while ((rc = tree_step(t, 1, err)) > 0)
		;
	return rc;
}

/* --- events ------------------------------------------------------------------------------------------------ */

/* A new name: adds a folder for the next step, or reports a file. */
static void visit_new_entry(struct tree *t, const char *path)
{
	const char *slash = strrchr(path, '/');
	char full[PATH_MAX];
	struct stat sb, target;

	if (join_tree_path(full, sizeof(full), t->root, path) || lstat(full, &sb))
		return;
	target = sb;
	if (S_ISLNK(sb.st_mode) && stat(full, &target))
		return;
	if (S_ISDIR(target.st_mode)) {
		walk_ready(&t->news);
		walk_add(t, &t->news, arena_strdup(t->news.paths, path), &target, 0);
	} else if (S_ISREG(target.st_mode) && is_run_file(slash ? slash + 1 : path)) {
		t->fn(t->arg, &(struct tree_file){ .path = path, .bytes = target.st_size,
						   .time_s = target.st_mtim.tv_sec, .inode = target.st_ino,
						   .time_ns = stat_time_ns(&target),
						   .linked = S_ISLNK(sb.st_mode) });
	}
}

static void handle_inotify_event(struct tree *t, const struct inotify_event *e)
{
	const struct tree_folder *f = map_get(t->folders, &e->wd, sizeof(e->wd));
	char path[PATH_MAX];

	if (e->mask & IN_Q_OVERFLOW)
		t->overflow = true;
	if (!f || !f->path || !e->len || e->name[0] == '.' || join_tree_path(path, sizeof(path), f->path, e->name) ||
	    is_store_file(path))
		return;
	if (e->mask & (IN_DELETE | IN_MOVED_FROM)) {
		if (e->mask & IN_ISDIR || is_run_file(e->name))
			t->fn(t->arg, &(struct tree_file){ .path = path, .bytes = -1, .gone = true });
	} else if (e->mask & (IN_ISDIR | IN_CREATE | IN_MOVED_TO))
		visit_new_entry(t, path);
	else if (is_run_file(e->name))
		t->fn(t->arg, &(struct tree_file){ .path = path, .bytes = -1 });
}

void tree_events(struct tree *t)
{
	char room[16384] __attribute__((aligned(8)));
	ssize_t n, at;

	if (t->fd < 0)
		return;
	while ((n = read(t->fd, room, sizeof(room))) > 0) {
		for (at = 0; at < n;) {
			const struct inotify_event *e = (const struct inotify_event *)(room + at);

			handle_inotify_event(t, e);
			at += (ssize_t)sizeof(*e) + e->len;
		}
	}
	/* Events were lost: scan again. */
	if (t->overflow)
		tree_scan_begin(t);
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
