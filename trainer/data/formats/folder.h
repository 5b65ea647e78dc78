/* SPDX-License-Identifier: Apache-2.0 */
/* folder.h: the files of a folder of images, sorted into classes: on disk (folder_scan.c), or in a store
 * (folder_remote.c). Private to them, folder.c and shards_find.c. */
#ifndef DPT_DATA_FOLDER_H
#define DPT_DATA_FOLDER_H

#include "trainer/data/container/samples.h"
#include "trainer/data/dataset.h"
#include "trainer/data/store/data_objects.h"

struct folder_file {
	size_t name; /* offset in names of its path relative to the data path */
	int32_t label;
};

struct folder_split {
	struct folder_file *file;
	int64_t n, cap;
};

struct folder_files {
	struct buf names;
	char **classes; /* sorted by name; owned */
	int n_classes;
	struct folder_split split[SPLIT_COUNT];
	bool has_val; /* has a validation folder; otherwise val_share of the files, chosen by the hash of their path */
};

struct folder_scan_opts {
	const char *path;
	double val_share;
	struct data_account *account; /* receives all files of the path */
	bool looks; /* counts empty files and pointers of Git LFS as left out; they remain samples */
};

/* Lists PATH/train/CLASS/… and PATH/val/CLASS/… (or valid, validation, test); or PATH/CLASS/…, of which val_share
 * are for validation. Files are at any depth below their class, sorted by path. Hidden files are skipped. ERR_USAGE: an
 * empty class, or a validation folder without images in class folders. */
int folder_scan(struct folder_files *ret, const struct folder_scan_opts *o, struct err *err);
void folder_files_done(struct folder_files *f);

/* Returns the path of image i relative to the data path; valid until folder_files_done. */
const char *folder_name(const struct folder_files *f, enum split s, int64_t i);

/* Returns true if the file (path relative to the data path) is for validation, as a share val_share of all files is:
 * the same files on every machine, whatever is added to the folder. */
bool folder_is_val(const char *name, double val_share);

/* Returns the i-th possible name of a validation folder, from 0; NULL: there are no more. */
const char *folder_val_name(int i);

/* Returns true if a class folder has an image, at any depth. */
bool folder_probe(const char *path);

/* A folder of images by class in a store that lists its objects (s3://), or whose files an index names
 * (http://…/NAME.txt). Each picture is an object. Order, classes and split are those that folder_scan finds in the
 * same files on disk. A line of an index is a file's size in bytes and its path relative to the index:
 * `find . -type f -printf '%s %P\n'`. */
struct folder_remote {
	struct samples samples; /* training samples first; sample i is object i */
	int n_train;
	char **classes; /* n_classes of them, by label */
	int n_classes, cap;
};

struct folder_remote_opts {
	const char *address;
	struct objects_opts store;    /* for the listing */
	double val_share;	      /* if there is no validation folder */
	struct data_account *account; /* receives all files of the listing */
};

/* Returns true if the address is that of an index of files. */
bool folder_remote_is_index(const char *address);

/* Lists the folder and adds its pictures to the store. ERR_USAGE: no pictures in class folders. */
int folder_remote_find(struct folder_remote *ret, struct objects *store, const struct folder_remote_opts *o,
		       struct err *err);
void folder_remote_done(struct folder_remote *f); /* a zeroed one is fine */

#endif
