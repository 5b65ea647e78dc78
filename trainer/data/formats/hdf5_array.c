/* SPDX-License-Identifier: Apache-2.0 */
/* hdf5_array.c: files, names of arrays, and labels. */
#include "trainer/data/formats/hdf5_array.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tracker/base/file.h"
#include "tracker/base/library.h"
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

static const char *const split_words[SPLIT_COUNT][5] = { { "train", "training", "" },
							 { "validation", "valid", "val", "test" } };
static const char *const array_words[2][6] = { { "images", "image", "x", "X", "data" },
					       { "labels", "label", "y", "Y", "targets" } };

static int hdf5so_load(struct hdf5so *ret, struct err *err)
{
#define HDF5SO_SYMBOL(name) { "H5" #name, &ret->name },
	const struct library_function wanted[] = { HDF5SO_SYMBOLS(HDF5SO_SYMBOL) };
#undef HDF5SO_SYMBOL
	const struct library library = { HDF5_SONAME, "HDF5 needs libhdf5 (Debian: libhdf5-dev)" };

	return library_load(&library, wanted, sizeof(wanted) / sizeof(wanted[0]), err);
}

static bool has_array(const struct hdf5_files *f, int i, const char *name)
{
	char group[64];
	const char *slash = strchr(name, '/');
	H5O_info_t info;

	snprintf(group, sizeof(group), "%.*s", slash ? (int)(slash - name) : 0, name);
	return (!*group || f->so.Lexists(f->file[i], group, H5P_DEFAULT) > 0) &&
	       f->so.Lexists(f->file[i], name, H5P_DEFAULT) > 0 &&
	       f->so.Oget_info_by_name1(f->file[i], name, &info, H5P_DEFAULT) >= 0 && info.type == H5O_TYPE_DATASET;
}

/* Finds the array of images or labels of a split in one file. Its name states the split unless the file's name does. */
static bool find_array_name(const struct hdf5_files *f, int i, const char *split, enum hdf5_content what, char ret[64])
{
	static const char *const forms[] = { "%s_%s", "%s_set_%s", "%s/%s", "%2$s_%1$s", "%.0s%s" };
	const bool bare = strstr(basename(f->path[i]), split);

	for (int w = 0; array_words[what][w]; w++)
		for (int k = *split ? 0 : 4; k < 4 + bare; k++) {
			snprintf(ret, 64, forms[k], split, array_words[what][w]);
			if (has_array(f, i, ret))
				return true;
		}
	return false;
}

hid_t hdf5_find_array(const struct hdf5_files *f, enum split s, enum hdf5_content what, const char **ret_split)
{
	char name[64];

	for (int w = 0; split_words[s][w]; w++)
		for (int i = 0; i < f->n; i++)
			if ((!*ret_split || *ret_split == split_words[s][w]) &&
			    find_array_name(f, i, split_words[s][w], what, name)) {
				*ret_split = split_words[s][w];
				return f->so.Dopen2(f->file[i], name, H5P_DEFAULT);
			}
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
		f->so.Ovisit1(f->file[i], H5_INDEX_NAME, H5_ITER_NATIVE, list_array, &b);
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
	int rc = hdf5so_load(&f->so, err);
	hid_t access;

	if (rc)
		return err_prefix(err, "%.150s", f->path[0]);
	f->so.open();
	f->so.Eset_auto2(H5E_DEFAULT, NULL, NULL);
	access = f->so.Pcreate(*f->so.P_CLS_FILE_ACCESS_ID_g);
	f->so.Pset_cache(access, 0, 10007, CHUNK_CACHE_BYTES, 0.75);
	for (int i = 0; !rc && i < f->n; i++) {
		rc = image_set_check_pointer(f->path[i], err);
		if (rc)
			break;
		f->file[i] = f->so.Fopen(f->path[i], 0 /* H5F_ACC_RDONLY */, access);
		if (f->file[i] < 0) {
			f->file[i] = 0;
			rc = err_set(err, ERR_USAGE, "%.300s: is not a complete HDF5 file", f->path[i]);
		}
	}
	f->so.Pclose(access);
	return rc;
}

void hdf5_files_close(struct hdf5_files *f)
{
	for (int i = 0; i < f->n; i++)
		if (f->file[i] > 0)
			f->so.Fclose(f->file[i]);
}

struct array_account {
	const struct hdf5so *so;
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
		if (a->used[i] > 0 && a->so->Oget_info1(a->used[i], &used) >= 0 && used.addr == info->addr &&
		    used.fileno == info->fileno)
			return 0;
	array = a->so->Dopen2(file, name, H5P_DEFAULT);
	ndim = array > 0 ? hdf5_shape(a->so, array, dim) : 0;
	if (ndim == 3 || ndim == 4)
		data_account_leave_samples(a->account, (int64_t)dim[0], name, "in an array that is not used");
	if (array > 0)
		a->so->Dclose(array);
	return 0;
}

void hdf5_account(const struct hdf5_files *f, const hid_t *used, int n, struct data_account *a)
{
	struct array_account each = { &f->so, used, n, a };

	for (int i = 0; i < f->n; i++)
		f->so.Ovisit1(f->file[i], H5_INDEX_NAME, H5_ITER_NATIVE, account_array, &each);
}

/* ---- labels ---- */

int hdf5_shape(const struct hdf5so *so, hid_t set, hsize_t ret[HDF5_DIMS_MAX])
{
	hid_t space = so->Dget_space(set);
	int n = so->Sget_simple_extent_ndims(space);

	if (n > 0 && n <= HDF5_DIMS_MAX)
		so->Sget_simple_extent_dims(space, ret, NULL);
	so->Sclose(space);
	return n <= HDF5_DIMS_MAX ? n : 0;
}

bool hdf5_labels_load(hid_t set, int64_t n, struct hdf5_labels *ret)
{
	hid_t type = ret->so->Dget_type(set);

	ret->kind = ret->so->Tget_class(type);
	ret->variable = ret->kind == H5T_STRING && ret->so->Tis_variable_str(type) > 0;
	ret->type = ret->kind == H5T_INTEGER ? ret->so->Tcopy(*ret->so->T_NATIVE_INT64_g)
		    : ret->kind == H5T_FLOAT ? ret->so->Tcopy(*ret->so->T_NATIVE_DOUBLE_g)
					     : ret->so->Tcopy(type);
	ret->so->Tclose(type);
	ret->each = ret->so->Tget_size(ret->type);
	ret->values = calloc((size_t)n + 1, ret->each);
	return ret->values && ret->so->Dread(set, ret->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, ret->values) >= 0;
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

void hdf5_label_text(const struct hdf5_labels *l, int64_t i, char ret[40])
{
	const char *at = l->values + (size_t)i * l->each;
	int64_t integer;
	double real;

	ret[0] = '\0';
	if (l->kind == H5T_INTEGER) {
		memcpy(&integer, at, sizeof(integer));
		snprintf(ret, 40, "%lld", (long long)integer);
	} else if (l->kind == H5T_FLOAT) {
		memcpy(&real, at, sizeof(real));
		snprintf(ret, 40, "%g", real);
	}
}

void hdf5_labels_free(struct hdf5_labels *l, hid_t set)
{
	if (l->variable && l->values) {
		hid_t space = l->so->Dget_space(set);

		l->so->Dvlen_reclaim(l->type, space, H5P_DEFAULT, l->values);
		l->so->Sclose(space);
	}
	free(l->values);
	if (l->type > 0)
		l->so->Tclose(l->type);
}

#endif
