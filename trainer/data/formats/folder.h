/* folder.h: the files of a folder of images, sorted into classes. Private to folder.c, folder_scan.c and
 * folder_remote.c. */
#ifndef DPT_DATA_FOLDER_H
#define DPT_DATA_FOLDER_H

#include "tracker/base/buf.h"
#include "trainer/data/dataset.h"

struct folder_file {
	size_t name; /* offset of its path, below the data path, in names */
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
	bool has_val; /* a folder of its own for validation; else files are dealt out by the hash of their path */
};

/* Lists PATH/train/CLASS/… and PATH/val/CLASS/… (or valid, validation, test), or PATH/CLASS/… of which val_share go to
 * validation. Files lie at any depth below their class and are sorted by path; those that are no images and hidden ones
 * are passed over. An empty class is ERR_USAGE. */
int folder_scan(struct folder_files *ret, const char *path, double val_share, struct err *err);
void folder_files_done(struct folder_files *f);

const char *folder_name(const struct folder_files *f, enum split s, int64_t i);

/* Whether a file of that name (below the data path) goes to validation, of which val_share do: the same ones on every
 * machine, whatever else is added to the folder. */
bool folder_is_val(const char *name, double val_share);

/* The i-th name that a folder of validation images may have, from 0; NULL: there are no more. */
const char *folder_val_name(int i);

/* Whether there are class folders with an image in one of them. */
bool folder_probe(const char *path);

#endif
