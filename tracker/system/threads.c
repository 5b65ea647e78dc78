/* threads.c: reads <root>/proc/self/task, thread by thread. */
#include "tracker/system/threads.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/system/proc.h"

#define BUSY_SHARE 0.05

/* "ns on a core, ns ready without one, number of time slices" */
static int read_thread_times(const char *root, const char *name, const char *id, struct threads_seen *ret)
{
	char path[PATH_MAX], text[PROC_TEXT_BYTES], *end;

	snprintf(path, sizeof(path), "proc/self/task/%s/comm", id);
	if (!proc_read(root, path, text) || strcmp(text, name))
		return 0;
	snprintf(path, sizeof(path), "proc/self/task/%s/schedstat", id);
	if (!proc_read(root, path, text))
		return 0;
	ret->id = strtol(id, NULL, 10);
	ret->on_core_s = 1e-9 * strtod(text, &end);
	ret->wait_s = 1e-9 * strtod(end, NULL);
	return 1;
}

static const struct threads_seen *find_thread(const struct threads *t, long id)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->seen[i].id == id)
			return &t->seen[i];
	return NULL;
}

static void add_thread_use(const struct threads *before, const struct threads_seen *now, double seconds,
			   struct threads_use *use)
{
	const struct threads_seen *old = find_thread(before, now->id);
	const double waited = now->wait_s - (old ? old->wait_s : 0);
	const double on_core = now->on_core_s - (old ? old->on_core_s : 0);

	use->wait_s = fmax(use->wait_s, waited); /* fmax of NaN and a number is the number */
	if (on_core > BUSY_SHARE * seconds) {
		use->busy++;
		use->on_core_s += on_core;
	}
}

/* Rewinds the folder; NULL: cannot be opened. */
static DIR *open_task_folder(struct threads *t, const char *root)
{
	char path[PATH_MAX];

	if (t->folder) {
		rewinddir(t->folder);
		return t->folder;
	}
	snprintf(path, sizeof(path), "%s/proc/self/task", root);
	t->folder = opendir(path);
	return t->folder;
}

void threads_read(struct threads *t, const char *root, double seconds, struct threads_use *ret)
{
	struct threads_use use = { .wait_s = NAN };
	struct threads now = { .folder = open_task_folder(t, root) };
	char name[PROC_TEXT_BYTES];
	const struct dirent *e;

	if (!proc_read(root, "proc/self/comm", name))
		name[0] = '\0';
	while (now.folder && now.n < THREADS_MAX && (e = readdir(now.folder))) {
		if (e->d_name[0] == '.' || !read_thread_times(root, name, e->d_name, &now.seen[now.n]))
			continue;
		add_thread_use(t, &now.seen[now.n++], seconds, &use);
	}
	*t = now;
	*ret = use;
}

void threads_done(struct threads *t)
{
	if (t->folder)
		closedir(t->folder);
}
