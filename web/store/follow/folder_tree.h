/* folder_tree.h: finds event files and journals below a folder, now and as they come and grow. Knows nothing of their content.
 * A large folder is looked at in steps, so that its owner can do other things in between. One thread. */
#ifndef DPT_STORE_FOLDER_TREE_H
#define DPT_STORE_FOLDER_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "tracker/base/err.h"

struct tree;

struct tree_file {
	const char *path; /* below the root, without a leading "./"; good until fn returns */
	int64_t bytes;    /* -1: unknown */
	int64_t time_s;   /* of its last change, where bytes are known */
	bool linked;      /* a symbolic link, whose growth is not noticed here */
	bool scanned;     /* found by a scan; else it is new, or was written to just now */
};

typedef void tree_found(void *arg, const struct tree_file *f);

/* watch false: no inotify. What cannot be watched later (a limit of the system) shows in tree_watching. */
int tree_open(struct tree **ret, const char *root, bool watch, tree_found *fn, void *arg, struct err *err);
void tree_close(struct tree *t);

/* Hears of changes in the folder of this file before a scan reaches it. */
void tree_watch_file(struct tree *t, const char *path);

/* Begins to look at everything anew, level by level. Folders of one level go newest first by the time of their last
 * change, files of one folder by name. */
void tree_scan_begin(struct tree *t);

/* Looks at what a scan or new folders left, for about so many seconds; calls fn. 1 when more is left, 0, or negative:
 * the root cannot be read. */
int tree_step(struct tree *t, double for_s, struct err *err);

int tree_scan(struct tree *t, struct err *err); /* both, to the end */

int tree_fd(const struct tree *t);        /* readable when something changed; -1 without inotify */
void tree_events(struct tree *t);         /* handles what is there; calls fn; new folders are left for tree_step */
bool tree_watching(const struct tree *t); /* false: changes have to be looked for by scans */
uint64_t tree_folders(const struct tree *t); /* of the newest scan, so far */

#endif
