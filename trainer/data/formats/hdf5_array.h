/* SPDX-License-Identifier: Apache-2.0 */
/* hdf5_array.h: arrays of images and labels in HDF5 files: which files a set has, how arrays are named, and the values
 * of labels. libhdf5 is loaded when files are opened: Debian's brings 30 more libraries. Private to hdf5.c. */
#ifndef DPT_DATA_HDF5_ARRAY_H
#define DPT_DATA_HDF5_ARRAY_H

#include "config.h"

#include "trainer/data/container/labels.h"
#include "trainer/data/dataset.h"

#ifdef HAVE_HDF5
#define H5_USE_110_API /* from 1.12 on, objects have tokens in place of addresses */
#include <hdf5.h>

/* What is used of libhdf5, without H5. Names that end in _g are its types and classes, which open() sets. */
#define HDF5SO_SYMBOLS(X)                                                                                            \
	X(Dclose) X(Dget_space) X(Dget_type) X(Dopen2) X(Dread) X(Dvlen_reclaim) X(Eset_auto2) X(Fclose) X(Fopen)    \
	X(Lexists) X(Oget_info1) X(Oget_info_by_name1) X(Ovisit1) X(P_CLS_FILE_ACCESS_ID_g) X(Pclose) X(Pcreate)     \
	X(Pset_cache) X(Sclose) X(Screate_simple) X(Sget_simple_extent_dims) X(Sget_simple_extent_ndims)             \
	X(Sselect_hyperslab) X(T_NATIVE_DOUBLE_g) X(T_NATIVE_FLOAT_g) X(T_NATIVE_INT64_g) X(T_NATIVE_UCHAR_g)        \
	X(Tclose) X(Tcopy) X(Tget_class) X(Tget_size) X(Tis_variable_str) X(open)

struct hdf5so {
#define HDF5SO_MEMBER(name) __typeof__(&H5##name) name;
	HDF5SO_SYMBOLS(HDF5SO_MEMBER)
#undef HDF5SO_MEMBER
};
#endif

#define HDF5_FILES_MAX 64
#define HDF5_PATH_BYTES 4200

/* The files of a set, sorted by name. */
struct hdf5_files {
	char path[HDF5_FILES_MAX][HDF5_PATH_BYTES];
	int n;
#ifdef HAVE_HDF5
	struct hdf5so so;
	hid_t file[HDF5_FILES_MAX]; /* 0: not open */
#endif
};

/* Finds the file at path, or the *.h5 and *.hdf5 of the folder. */
void hdf5_files_find(const char *path, struct hdf5_files *ret);

#ifdef HAVE_HDF5

#define HDF5_DIMS_MAX 8

int hdf5_files_open(struct hdf5_files *f, struct err *err); /* ERR_USAGE; ERR_UNSUPPORTED: libhdf5 is missing */
void hdf5_files_close(struct hdf5_files *f);

enum hdf5_content { HDF5_IMAGES, HDF5_LABELS };

/* Opens the array of images or labels of a split, by the first word for the split that a file has ("": training, if
 * its name states no split). *ret_split: that word; if set before, the only one. 0: none. */
hid_t hdf5_find_array(const struct hdf5_files *f, enum split s, enum hdf5_content what, const char **ret_split);

/* Counts the samples in arrays of images (3 or 4 dimensions) as left out, except for those in the n used arrays. */
void hdf5_account(const struct hdf5_files *f, const hid_t *used, int n, struct data_account *a);

/* ERR_USAGE, with the arrays that there are. path: of the set. */
int hdf5_refuse_missing(const struct hdf5_files *f, const char *path, const char *what, struct err *err);

/* Returns the number of dimensions; 0: too many. */
int hdf5_shape(const struct hdf5so *so, hid_t array, hsize_t ret[HDF5_DIMS_MAX]);

/* The values of an array of labels in memory. */
struct hdf5_labels {
	const struct hdf5so *so; /* set by the caller */
	hid_t type;		 /* type of a value */
	H5T_class_t kind;
	size_t each;
	bool variable; /* strings of any length: a pointer each */
	char *values;
};

bool hdf5_labels_load(hid_t array, int64_t n, struct hdf5_labels *ret); /* false: it cannot be read */
struct sample_label hdf5_label(const struct hdf5_labels *l, int64_t i); /* borrows its name from l */
void hdf5_label_text(const struct hdf5_labels *l, int64_t i, char ret[40]); /* "": neither integer nor real */
void hdf5_labels_free(struct hdf5_labels *l, hid_t array);		/* also after a failure */

#endif

#endif
