/* SPDX-License-Identifier: Apache-2.0 */
/* folder_tree.h: finds event files and journals below a folder, existing and new ones. Independent of their content.
 * Large folders are scanned in steps, so that the caller can work in between. One thread. */
#ifndef DPT_STORE_FOLDER_TREE_H
#define DPT_STORE_FOLDER_TREE_H

#include "tracker/base/err.h"

struct tree;

struct tree_file {
	const char *path; /* below the root, without "./"; valid until fn returns */
	int64_t bytes;	  /* -1: unknown */
	int64_t time_s;	  /* time of the last change, if bytes is known */
	bool linked;	  /* a symbolic link, whose growth is not watched */
	bool scanned;	  /* found by a scan; else it is new, or was just written */
	bool gone;	  /* nothing has this name any more: a file, or a folder with all below it */
	int denied;	  /* a folder that cannot be listed: the errno; its other members are unknown */
	uint64_t inode;	  /* if bytes is known, like time_ns */
	int64_t time_ns;
};

typedef void tree_found(void *arg, const struct tree_file *f);

struct tree_opts {
	const char *root;
	bool watch; /* with inotify; if a limit of the system prevents it, tree_watching returns false */
	tree_found *fn;
	void *arg;
};
struct tree *tree_open(const struct tree_opts *o);
void tree_close(struct tree *t);

/* Watches the folder of this file before a scan reaches it. */
void tree_watch_file(struct tree *t, const char *path);

/* Starts a new scan, level by level. Folders of one level are ordered by the time of their last change, newest
 * first; files of a folder by name. */
void tree_scan_begin(struct tree *t);

/* Continues scans and new folders for about for_s seconds; calls fn. 1: there is more, 0: done, negative: the root
 * cannot be read. */
int tree_step(struct tree *t, double for_s, struct err *err);

int tree_scan(struct tree *t, struct err *err); /* both, to the end */

int tree_fd(const struct tree *t);	     /* readable after a change; -1 without inotify */
void tree_events(struct tree *t);	     /* handles pending events; calls fn; new folders wait for tree_step */
bool tree_watching(const struct tree *t);    /* false: scan periodically to find changes */
uint64_t tree_folders(const struct tree *t); /* folders of the current or last scan */

#endif
