/* SPDX-License-Identifier: Apache-2.0 */
/* files.h: files and folders below an open folder, and artifacts in one. Paths are resolved segment by segment and
 * never through symbolic links, so nothing outside is reached. Private to web/store. */
#ifndef DPT_STORE_FILES_H
#define DPT_STORE_FILES_H

#include <sys/stat.h>

#include "web/store/files/artifacts.h"

#define FILES_UPLOADS ".uploads" /* next to the experiments: running uploads; clients cannot name it */

/* The experiment that a path of an artifact belongs to, by its first name; -1: none. */
int64_t artifact_experiment(const char *path);

struct db;

/* 1: the run or model that this would be a file of was removed for good, or is being removed; 0, or negative. */
#define ARTIFACT_GONE "'%.200s': its run or model was removed for good"
int artifact_owner_gone(struct db *d, const char *path, struct err *err);

static inline int64_t file_changed_ns(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

struct files_sum {
	uint64_t files, bytes;
	uint64_t links; /* and special files, which are not copied */
};

/* Removes name below at_fd and everything in it, except mounted filesystems; dry only counts. Returns 0, also if it
 * is missing, or an errno. */
int files_remove(int at_fd, const char *name, int dry, struct files_sum *sum);

/* Removes the empty folders at name and below it. */
void files_remove_empty(int at_fd, const char *name);

/* Adds the files at path below root_fd to a list. Returns 0, also if it is missing, or an errno. */
int files_list(int root_fd, const char *path, struct arena *a, struct artifact_files *io);

/* fn is called between files and pieces; a nonzero result cancels. */
struct files_stop {
	int (*fn)(void *arg);
	void *arg;
};

/* Copies a file, or a folder with everything in it except links and special files, which it names, to a new name,
 * synced. stop may be NULL. */
int files_copy(const char *from, const char *to, struct files_sum *sum, const struct files_stop *stop, struct err *err);

/* Counts a link or special file that is not copied; a warning names the first ones. */
void files_leave_out(struct files_sum *sum, const char *path);

/* A unique name of 32 random hex digits. ERR_IO. */
int files_draw_name(char ret[33], struct err *err);

int files_sync_parent(const char *path, struct err *err); /* makes the folder entry of path durable */

/* Removes all files of a run or model (EXPERIMENT/RUN) that artifact_owner_gone knows, and adds them to *io; dry only
 * counts. Of objects it only counts: the rows are removed with the run's, then artifact_sweep removes the objects. */
int artifact_remove(struct store *s, const char *path, bool dry, struct files_sum *io, struct err *err);

struct state;

/* In a change: removes the row of a file, the image that it became, and records that a file on disk leaves. Not if an
 * upload has replaced it. 1: removed, 0: not, or negative. */
int artifact_drop(struct state *st, bool on_disk, const struct artifact_item *file, struct err *err);

/* --- disk.c: private to web/store/files ----------------------------------------------------------------------- */

/* Artifacts as files below one folder; the alternative to objects.h. An upload writes a temporary file, holding a
 * lock on it, and renames it, so a file is complete or absent. The next process that opens the folder removes files
 * of killed uploads. */
struct disk;
struct disk_receiving;
struct entries;

struct disk *disk_new(const char *root); /* does not access root yet */
void disk_free(struct disk *k);					    /* NULL is fine */
const char *disk_root(const struct disk *k);

int disk_find(struct disk *k, const char *path, struct artifact_file *ret, struct err *err); /* without its digest */
void disk_entries(struct disk *k, const char *path, struct entries *list);
int disk_files(struct disk *k, const char *path, struct arena *a, struct artifact_files *io, struct err *err);
int disk_leave(struct disk *k, const struct artifact_files *files, struct err *err); /* unless they were replaced */
void disk_remove_empty(struct disk *k, const char *path);			   /* folders without files */
int disk_remove(struct disk *k, const char *path, bool dry, struct files_sum *io, struct err *err);

/* Uploads: see artifact_begin. */
int disk_receiving_begin(struct disk_receiving **ret, struct disk *k, const char *path, struct err *err);
int disk_receiving_write(struct disk_receiving *u, const void *bytes, size_t n, struct err *err);
int disk_receiving_commit(struct disk_receiving *u, struct store *s, struct artifact_file *ret, struct err *err);
void disk_receiving_end(struct disk_receiving *u); /* NULL is fine */

#endif
