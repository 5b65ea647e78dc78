/* SPDX-License-Identifier: Apache-2.0 */
/* hdf5_array.c: files, names of arrays, and labels. */
#include "trainer/data/formats/hdf5_array.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tracker/base/file.h"
#include "trainer/data/formats/image_set.h"

static bool is_hdf5_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	return name[0] != '.' && dot && (!strcasecmp(dot, ".h5") || !strcasecmp(dot, ".hdf5"));
}

static int compare_hdf5_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

void hdf5_files_find(const char *path, struct hdf5_files *ret)
{
	const char *slash = strrchr(path, '/');
	const struct dirent *e;
	struct stat st;
	DIR *d;

	*ret = (struct hdf5_files){ .n = 0 };
	if (!stat(path, &st) && S_ISREG(st.st_mode) && is_hdf5_name(slash ? slash + 1 : path))
		snprintf(ret->path[ret->n++], HDF5_PATH_BYTES, "%s", path);
	d = opendir(path);
	while (d && ret->n < HDF5_FILES_MAX && (e = readdir(d)))
		if (is_hdf5_name(e->d_name) && file_join(ret->path[ret->n], HDF5_PATH_BYTES, path, e->d_name))
			ret->n++;
	if (d)
		closedir(d);
	qsort(ret->path, (size_t)ret->n, sizeof(ret->path[0]), compare_hdf5_names);
}

#ifdef HAVE_HDF5

#define CHUNK_CACHE_BYTES ((size_t)64 << 20)

static const char *const split_words[SPLIT_COUNT][5] = { { "train", "training" },
							 { "validation", "valid", "val", "test" } };
static const char *const array_words[2][6] = { { "images", "image", "x", "X", "data" },
					       { "labels", "label", "y", "Y", "targets" } };

static bool has_array(hid_t file, const char *name)
{
	char group[64];
	const char *slash = strchr(name, '/');
	H5O_info_t info;

	snprintf(group, sizeof(group), "%.*s", slash ? (int)(slash - name) : 0, name);
	return (!*group || H5Lexists(file, group, H5P_DEFAULT) > 0) && H5Lexists(file, name, H5P_DEFAULT) > 0 &&
	       H5Oget_info_by_name(file, name, &info, H5P_DEFAULT) >= 0 && info.type == H5O_TYPE_DATASET;
}

/* Finds the array of images (which 0) or labels (1) of a split in one file. bare: its name need not state the split. */
static bool find_array_name(hid_t file, const char *split, int which, bool bare, char ret[64])
{
	static const char *const forms[] = { "%s_%s", "%s_set_%s", "%s/%s" };

	for (int w = 0; array_words[which][w]; w++) {
		const char *word = array_words[which][w];

		for (int k = 0; split && k < 3; k++) {
			snprintf(ret, 64, forms[k], split, word);
			if (has_array(file, ret))
				return true;
		}
		if (split) {
			snprintf(ret, 64, "%s_%s", word, split);
			if (has_array(file, ret))
				return true;
		}
		snprintf(ret, 64, "%s", word);
		if (bare && has_array(file, ret))
			return true;
	}
	return false;
}

/* Returns true if the file's name states the split. */
static bool file_names_split(const char *path, const char *split)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	return strstr(name, split) != NULL;
}

hid_t hdf5_find_array(const struct hdf5_files *f, enum split s, enum hdf5_content what, const char **ret_split)
{
	char name[64];

	for (int w = 0; split_words[s][w]; w++)
		for (int i = 0; i < f->n; i++)
			if ((!*ret_split || *ret_split == split_words[s][w]) &&
			    find_array_name(f->file[i], split_words[s][w], what,
					    file_names_split(f->path[i], split_words[s][w]), name)) {
				*ret_split = split_words[s][w];
				return H5Dopen2(f->file[i], name, H5P_DEFAULT);
			}
	return 0;
}

hid_t hdf5_find_bare(const struct hdf5_files *f, enum hdf5_content what)
{
	char name[64];

	for (int i = 0; i < f->n; i++)
		if (find_array_name(f->file[i], NULL, what, true, name))
			return H5Dopen2(f->file[i], name, H5P_DEFAULT);
	return 0;
}

static herr_t list_array(hid_t group, const char *name, const H5O_info_t *info, void *user)
{
	struct buf *b = user;

	(void)group;
	if (info->type == H5O_TYPE_DATASET && b->len < 250)
		buf_addf(b, "%s%.60s", b->len ? ", " : "", name);
	return 0;
}

int hdf5_refuse_missing(const struct hdf5_files *f, const char *path, const char *what, struct err *err)
{
	struct buf b;
	int rc;

	buf_init(&b, 4096);
	for (int i = 0; i < f->n; i++)
		H5Ovisit(f->file[i], H5_INDEX_NAME, H5_ITER_NATIVE, list_array, &b);
	buf_addc(&b, '\0');
	rc = err_set(err, ERR_USAGE,
		     "%.150s: no array of %s (images or x, labels or y; train_images, x_train, train/images): it has "
		     "%.250s",
		     path, what, b.data && *b.data ? b.data : "none");
	buf_done(&b);
	return rc;
}

int hdf5_files_open(struct hdf5_files *f, struct err *err)
{
	hid_t access = H5Pcreate(H5P_FILE_ACCESS);
	int rc = 0;

	H5Pset_cache(access, 0, 10007, CHUNK_CACHE_BYTES, 0.75);
	for (int i = 0; !rc && i < f->n; i++) {
		rc = image_set_check_pointer(f->path[i], err);
		if (rc)
			break;
		f->file[i] = H5Fopen(f->path[i], H5F_ACC_RDONLY, access);
		if (f->file[i] < 0) {
			f->file[i] = 0;
			rc = err_set(err, ERR_USAGE, "%.300s: is not a complete HDF5 file", f->path[i]);
		}
	}
	H5Pclose(access);
	return rc;
}

void hdf5_files_close(struct hdf5_files *f)
{
	for (int i = 0; i < f->n; i++)
		if (f->file[i] > 0)
			H5Fclose(f->file[i]);
}

struct array_account {
	const hid_t *used;
	int n;
	struct data_account *account;
};

static herr_t account_array(hid_t file, const char *name, const H5O_info_t *info, void *user)
{
	struct array_account *a = user;
	hsize_t dim[HDF5_DIMS_MAX] = { 0 };
	H5O_info_t used;
	hid_t array;
	int ndim;

	if (info->type != H5O_TYPE_DATASET)
		return 0;
	for (int i = 0; i < a->n; i++)
		if (a->used[i] > 0 && H5Oget_info(a->used[i], &used) >= 0 && used.addr == info->addr &&
		    used.fileno == info->fileno)
			return 0;
	array = H5Dopen2(file, name, H5P_DEFAULT);
	ndim = array > 0 ? hdf5_shape(array, dim) : 0;
	if (ndim == 3 || ndim == 4)
		data_account_leave_samples(a->account, (int64_t)dim[0], name, "in an array that is not used");
	if (array > 0)
		H5Dclose(array);
	return 0;
}

void hdf5_account(const struct hdf5_files *f, const hid_t *used, int n, struct data_account *a)
{
	struct array_account each = { used, n, a };

	for (int i = 0; i < f->n; i++)
		H5Ovisit(f->file[i], H5_INDEX_NAME, H5_ITER_NATIVE, account_array, &each);
}

/* ---- labels ---- */

int hdf5_shape(hid_t set, hsize_t ret[HDF5_DIMS_MAX])
{
	hid_t space = H5Dget_space(set);
	int n = H5Sget_simple_extent_ndims(space);

	if (n > 0 && n <= HDF5_DIMS_MAX)
		H5Sget_simple_extent_dims(space, ret, NULL);
	H5Sclose(space);
	return n <= HDF5_DIMS_MAX ? n : 0;
}

bool hdf5_labels_load(hid_t set, int64_t n, struct hdf5_labels *ret)
{
	hid_t type = H5Dget_type(set);

	ret->kind = H5Tget_class(type);
	ret->variable = ret->kind == H5T_STRING && H5Tis_variable_str(type) > 0;
	ret->type = ret->kind == H5T_INTEGER ? H5Tcopy(H5T_NATIVE_INT64)
		    : ret->kind == H5T_FLOAT ? H5Tcopy(H5T_NATIVE_DOUBLE)
					     : H5Tcopy(type);
	H5Tclose(type);
	ret->each = H5Tget_size(ret->type);
	ret->values = calloc((size_t)n + 1, ret->each);
	return ret->values && H5Dread(set, ret->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, ret->values) >= 0;
}

struct sample_label hdf5_label(const struct hdf5_labels *l, int64_t i)
{
	const char *at = l->values + (size_t)i * l->each;
	int64_t integer;
	double real;

	switch (l->kind) {
	case H5T_INTEGER:
		memcpy(&integer, at, sizeof(integer));
		return label_of_number(integer);
	case H5T_FLOAT:
		memcpy(&real, at, sizeof(real));
		return label_of_real(real);
	case H5T_ENUM: /* h5py's truth values */
		return label_of_number(l->each == 1 ? *at : -1);
	case H5T_STRING:
		if (l->variable)
			memcpy(&at, l->values + (size_t)i * l->each, sizeof(at));
		return at ? label_of_text(at, l->variable ? strlen(at) : l->each) : label_missing();
	default:
		return (struct sample_label){ .wrong = "its label is neither a number nor a string" };
	}
}

void hdf5_labels_free(struct hdf5_labels *l, hid_t set)
{
	if (l->variable && l->values) {
		hid_t space = H5Dget_space(set);

		H5Dvlen_reclaim(l->type, space, H5P_DEFAULT, l->values);
		H5Sclose(space);
	}
	free(l->values);
	if (l->type > 0)
		H5Tclose(l->type);
}

#endif
