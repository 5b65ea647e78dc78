/* tree.h: finds event files and journals below a folder, now and as they come and grow. Knows nothing of their content.
 * One thread. */
#ifndef DPT_STORE_TREE_H
#define DPT_STORE_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "tracker/base/err.h"

struct tree;

/* path: below the root, without a leading "./". linked: a symbolic link, whose growth is not noticed here. */
typedef void tree_found(void *arg, const char *path, bool linked);

/* watch false: no inotify. What cannot be watched later (a limit of the system) shows in tree_watching. */
int tree_open(struct tree **ret, const char *root, bool watch, tree_found *fn, void *arg, struct err *err);
void tree_close(struct tree *t);

/* Walks everything in the order of names; fn is called for each file. */
int tree_scan(struct tree *t, struct err *err);

int tree_fd(const struct tree *t);        /* readable when something changed; -1 without inotify */
int tree_events(struct tree *t, struct err *err); /* handles what is there; calls fn */
bool tree_watching(const struct tree *t); /* false: changes have to be looked for by tree_scan */
uint64_t tree_folders(const struct tree *t);

#endif
