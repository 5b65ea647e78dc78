/* SPDX-License-Identifier: Apache-2.0 */
/* hdf5_array.h: arrays of images and labels in HDF5 files: which files a set has, how arrays are named, and the values
 * of labels. Private to hdf5.c. */
#ifndef DPT_DATA_HDF5_ARRAY_H
#define DPT_DATA_HDF5_ARRAY_H

#include "config.h"

#include "trainer/data/container/labels.h"
#include "trainer/data/dataset.h"

#ifdef HAVE_HDF5
#define H5_USE_110_API /* from 1.12 on, objects have tokens in place of addresses */
#include <hdf5.h>
#endif

#define HDF5_FILES_MAX 64
#define HDF5_PATH_BYTES 4200

/* The files of a set, sorted by name. */
struct hdf5_files {
	char path[HDF5_FILES_MAX][HDF5_PATH_BYTES];
	int n;
#ifdef HAVE_HDF5
	hid_t file[HDF5_FILES_MAX]; /* 0: not open */
#endif
};

/* Finds the file at path, or the *.h5 and *.hdf5 of the folder. */
void hdf5_files_find(const char *path, struct hdf5_files *ret);

#ifdef HAVE_HDF5

#define HDF5_DIMS_MAX 8

int hdf5_files_open(struct hdf5_files *f, struct err *err); /* ERR_USAGE */
void hdf5_files_close(struct hdf5_files *f);

enum hdf5_content { HDF5_IMAGES, HDF5_LABELS };

/* Opens the array of images or labels of a split, by the first word for the split that a file has. *ret_split: that
 * word; if set before, the only one. 0: none. */
hid_t hdf5_find_array(const struct hdf5_files *f, enum split s, enum hdf5_content what, const char **ret_split);
hid_t hdf5_find_bare(const struct hdf5_files *f, enum hdf5_content what); /* its name states no split */

/* Counts the samples in arrays of images (3 or 4 dimensions) as left out, except for those in the n used arrays. */
void hdf5_account(const struct hdf5_files *f, const hid_t *used, int n, struct data_account *a);

/* ERR_USAGE, with the arrays that there are. path: of the set. */
int hdf5_refuse_missing(const struct hdf5_files *f, const char *path, const char *what, struct err *err);

int hdf5_shape(hid_t array, hsize_t ret[HDF5_DIMS_MAX]); /* the number of dimensions; 0: too many */

/* The values of an array of labels in memory. */
struct hdf5_labels {
	hid_t type; /* type of a value */
	H5T_class_t kind;
	size_t each;
	bool variable; /* strings of any length: a pointer each */
	char *values;
};

bool hdf5_labels_load(hid_t array, int64_t n, struct hdf5_labels *ret); /* false: it cannot be read */
struct sample_label hdf5_label(const struct hdf5_labels *l, int64_t i); /* borrows its name from l */
void hdf5_labels_free(struct hdf5_labels *l, hid_t array);		/* also after a failure */

#endif

#endif
