/* SPDX-License-Identifier: Apache-2.0 */
/* hdf5.c: images and labels as arrays in HDF5 files, as h5py writes them: one file, or the *.h5 and *.hdf5 of a folder.
 * An array is found by its name: images or x, labels or y, with the split in the name, in a group, or in the file's
 * name (train_images, x_train, train/images; images in train.h5). Images are [N,H,W], [N,H,W,C] or [N,C,H,W] of bytes
 * or reals; labels are numbers, truth values or texts. Samples are read on demand through libhdf5, which is an optional
 * library and trusts the file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/crc32c.h"
#include "tracker/mem/mem.h"
#include "trainer/data/formats/formats.h"
#include "trainer/data/formats/hdf5_array.h"
#include "trainer/data/pictures/pixels.h"

static bool hdf5_probe(const char *path)
{
	struct hdf5_files *names = mem_alloc(sizeof(*names));
	bool any;

	hdf5_files_find(path, names);
	any = names->n;
	free(names);
	return any;
}

#ifdef HAVE_HDF5

#define BLOCK_BYTES ((size_t)16 << 20) /* bytes of images read at a time when the set is opened */

struct hdf5 {
	struct dataset base;
	struct hdf5_files files;
	hid_t images[SPLIT_COUNT]; /* 0: none */
	hid_t type;		   /* type of pixels in memory */
	size_t pixel_bytes;
	bool planar;		     /* [N,C,H,W] */
	int64_t rows[SPLIT_COUNT];   /* rows of the arrays */
	int32_t *label[SPLIT_COUNT]; /* [row]; negative: unusable */
	uint32_t *row[SPLIT_COUNT];  /* [sample] */
	bool one_array;		     /* both splits are in that of training */
	struct label_names found;
	struct buf classes;
	const char **class_names;
	const char *said;     /* the last reason why a label is unusable */
	pthread_mutex_t lock; /* libhdf5 may not be thread-safe */
};

/* ---- labels ---- */

/* Returns the label of a row: a value, or the place of the only 1 among `each` values of 0. */
static struct sample_label read_row_label(const struct hdf5_labels *l, int64_t row, int64_t each)
{
	int64_t found = -1, sum = 0;

	if (each == 1)
		return hdf5_label(l, row);
	for (int64_t k = 0; k < each; k++) {
		const struct sample_label one = hdf5_label(l, row * each + k);

		if (one.wrong || one.name || one.number > 1)
			return (struct sample_label){ .wrong = "its label is neither a number nor one-hot" };
		sum += one.number;
		found = one.number ? k : found;
	}
	return sum == 1 ? label_of_number(found)
			: (struct sample_label){ .wrong = "its label is neither a number nor one-hot" };
}

/* Counts a sample whose label is unusable, with the first one and its value. l: NULL: one-hot. */
static void leave_label(struct hdf5 *d, const struct hdf5_labels *l, int64_t row, const char *wrong)
{
	char value[40] = "", example[DATA_ACCOUNT_TEXT_BYTES];

	if (l)
		hdf5_label_text(l, row, value);
	snprintf(example, sizeof(example), "row %lld%s%s", (long long)row, *value ? ": " : "", value);
	data_account_leave_samples(&d->base.account, 1, wrong == d->said ? NULL : example, "%s", wrong);
	d->said = wrong;
}

/* Reads the labels of a split: [N], [N,1,…], or one-hot rows [N,K]. Names are numbered later: -2 - number; -1:
 * unusable. */
static int read_split_labels(struct hdf5 *d, enum split s, hid_t set, struct err *err)
{
	struct hdf5_labels l = { .so = &d->files.so };
	hsize_t dim[HDF5_DIMS_MAX] = { 0 };
	int ndim = hdf5_shape(&d->files.so, set, dim), rc = 0;
	hsize_t all = ndim ? 1 : 0;
	int64_t each;

	for (int i = 0; i < ndim; i++)
		all *= dim[i];
	if (dim[0] != (hsize_t)d->rows[s] || (all != dim[0] && (ndim != 2 || dim[1] > LABELS_MOST)))
		return err_set(err, ERR_USAGE,
			       "%.200s: %llu labels for %lld images: expected one value each, or one-hot rows",
			       d->base.path, (unsigned long long)all, (long long)d->rows[s]);
	each = (int64_t)(all / dim[0]);
	d->label[s] = mem_array((size_t)d->rows[s], sizeof(*d->label[s]));
	if (!hdf5_labels_load(set, (int64_t)all, &l))
		rc = err_set(err, ERR_USAGE, "%.200s: the labels cannot be read", d->base.path);
	for (int64_t i = 0; !rc && i < d->rows[s]; i++) {
		const struct sample_label one = read_row_label(&l, i, each);
		int32_t name = one.name ? label_names_add(&d->found, one.name, one.n) : 0;

		if (one.wrong)
			leave_label(d, each == 1 ? &l : NULL, i, one.wrong);
		d->label[s][i] = one.wrong ? -1 : one.name ? -2 - name : (int32_t)one.number;
	}
	hdf5_labels_free(&l, set);
	return rc;
}

/* Numbers names in the order of their bytes. If there are names, numbers are unusable. */
static int number_hdf5_classes(struct hdf5 *d, struct err *err)
{
	const int32_t n = label_names_count(&d->found);
	int32_t *rank;
	const char *at;

	if (!n)
		return 0;
	if (label_names_check(&d->found, err))
		return ERR_USAGE;
	rank = label_names_sort(&d->found, &d->classes);
	d->class_names = mem_array((size_t)n, sizeof(*d->class_names));
	at = d->classes.data;
	for (int32_t i = 0; i < n; i++, at += strlen(at) + 1)
		d->class_names[i] = at;
	for (int s = 0; s < SPLIT_COUNT; s++)
		for (int64_t i = 0; i < d->rows[s]; i++) {
			if (d->label[s][i] >= 0)
				data_account_leave_samples(&d->base.account, 1, NULL,
							   "its label is a number, where others are names");
			d->label[s][i] = d->label[s][i] < -1 ? rank[-2 - d->label[s][i]] : -1;
		}
	free(rank);
	d->base.class_names = d->class_names;
	d->base.n_class_names = n;
	return 0;
}

/* ---- images ---- */

static int refuse_image_shape(const struct hdf5 *d, struct err *err)
{
	return err_set(err, ERR_USAGE,
		       "%.200s: expected images [N,H,W], [N,H,W,C] or [N,C,H,W] of bytes or reals, of one shape, with "
		       "up to %d channels",
		       d->base.path, DATASET_CHANNELS_MAX);
}

/* Sets the size and the type of the images from an array; that of evaluation must have those of training. */
static int read_image_shape(struct hdf5 *d, enum split s, struct err *err)
{
	const struct hdf5so *so = &d->files.so;
	hsize_t dim[HDF5_DIMS_MAX] = { 0 };
	const int ndim = hdf5_shape(so, d->images[s], dim);
	hid_t type = so->Dget_type(d->images[s]);
	const size_t each = so->Tget_size(type);
	const H5T_class_t kind = so->Tget_class(type);
	const bool planar = ndim == 4 && dim[3] > DATASET_CHANNELS_MAX && dim[1] <= DATASET_CHANNELS_MAX;
	const enum dtype dtype = kind == H5T_INTEGER && each == 1 ? DTYPE_U8 : each == 8 ? DTYPE_F64 : DTYPE_F32;
	const hsize_t channels = ndim == 3 ? 1 : planar ? dim[1] : dim[3], height = planar ? dim[2] : dim[1],
		      width = planar ? dim[3] : dim[2];
	struct dataset *b = &d->base;

	so->Tclose(type);
	if ((ndim != 3 && ndim != 4) || !dim[0] || dim[0] > (hsize_t)DATASET_SAMPLES_MAX || !height || !width ||
	    height > 65535 || width > 65535 || !channels || channels > DATASET_CHANNELS_MAX ||
	    (kind != H5T_FLOAT && dtype != DTYPE_U8))
		return refuse_image_shape(d, err);
	if (s == SPLIT_VAL && (b->height != (int)height || b->width != (int)width || b->channels != (int)channels ||
			       b->dtype != dtype || d->planar != planar))
		return refuse_image_shape(d, err);
	d->rows[s] = (int64_t)dim[0];
	d->planar = planar;
	d->type = *(dtype == DTYPE_U8	 ? so->T_NATIVE_UCHAR_g
		    : dtype == DTYPE_F64 ? so->T_NATIVE_DOUBLE_g
					 : so->T_NATIVE_FLOAT_g);
	d->pixel_bytes = dtype == DTYPE_U8 ? 1 : dtype == DTYPE_F64 ? 8 : 4;
	b->dtype = dtype;
	b->height = (int)height;
	b->width = (int)width;
	b->channels = (int)channels;
	return 0;
}

/* Reads n images from row `first`, in the layout of the file. */
static bool read_image_rows(struct hdf5 *d, enum split s, int64_t first, int64_t n, void *to)
{
	const struct hdf5so *so = &d->files.so;
	hsize_t begin[HDF5_DIMS_MAX] = { (hsize_t)first }, count[HDF5_DIMS_MAX];
	hid_t file, memory;
	bool good;

	pthread_mutex_lock(&d->lock);
	so->Eset_auto2(H5E_DEFAULT, NULL, NULL);
	hdf5_shape(so, d->images[s], count);
	count[0] = (hsize_t)n;
	file = so->Dget_space(d->images[s]);
	memory = so->Screate_simple(so->Sget_simple_extent_ndims(file), count, NULL);
	good = so->Sselect_hyperslab(file, H5S_SELECT_SET, begin, NULL, count, NULL) >= 0 &&
	       so->Dread(d->images[s], d->type, memory, file, H5P_DEFAULT, to) >= 0;
	so->Sclose(memory);
	so->Sclose(file);
	pthread_mutex_unlock(&d->lock);
	return good;
}

/* How often each level occurs in the training images, by channel. */
struct hdf5_levels {
	uint64_t count[DATASET_CHANNELS_MAX][256];
};

static void count_image_levels(const struct hdf5 *d, const uint8_t *image, struct hdf5_levels *l)
{
	const size_t channels = (size_t)d->base.channels, plane = (size_t)d->base.height * (size_t)d->base.width;

	for (size_t i = 0; i < plane * channels; i++)
		l->count[d->planar ? i / plane : i % channels][image[i]]++;
}

/* Reads a split's images once, for its hash and, of those of training, their mean and deviation. */
static int measure_split(struct hdf5 *d, enum split s, const bool *train, uint32_t *ret_crc, struct err *err)
{
	const size_t each = pixels_count(&d->base) * d->pixel_bytes;
	const int64_t at_once = (int64_t)(BLOCK_BYTES / each + 1);
	struct hdf5_levels levels = { { { 0 } } };
	uint8_t *block = mem_alloc((size_t)at_once * each);
	int rc = 0;

	for (int64_t i = 0; !rc && i < d->rows[s]; i += at_once) {
		int64_t n = d->rows[s] - i < at_once ? d->rows[s] - i : at_once;

		if (!read_image_rows(d, s, i, n, block))
			rc = err_set(err, ERR_USAGE, "%.200s: images %lld to %lld cannot be read: the file is damaged",
				     d->base.path, (long long)i, (long long)(i + n - 1));
		*ret_crc = crc32c(*ret_crc, block, rc ? 0 : (size_t)n * each);
		for (int64_t k = 0; !rc && k < n && d->base.dtype == DTYPE_U8; k++)
			if (train && train[i + k])
				count_image_levels(d, block + (size_t)k * each, &levels);
	}
	free(block);
	for (int c = 0; train && d->base.dtype == DTYPE_U8 && c < d->base.channels; c++)
		pixels_moments(levels.count[c], &d->base.mean[c], &d->base.std[c]);
	return rc;
}

/* ---- the set ---- */

/* Opens the arrays of a split, and reads its labels. Only training must have some. */
static int open_hdf5_split(struct hdf5 *d, enum split s, struct err *err)
{
	const char *split = NULL;
	hid_t labels = 0;
	int rc;

	d->images[s] = hdf5_find_array(&d->files, s, HDF5_IMAGES, &split);
	if (d->images[s] > 0)
		labels = hdf5_find_array(&d->files, s, HDF5_LABELS, &split);
	if (d->images[s] <= 0) {
		d->images[s] = 0;
		return s == SPLIT_VAL ? 0 : hdf5_refuse_missing(&d->files, d->base.path, "images", err);
	}
	if (labels <= 0)
		return hdf5_refuse_missing(&d->files, d->base.path, "labels", err);
	rc = read_image_shape(d, s, err);
	if (!rc)
		rc = read_split_labels(d, s, labels, err);
	d->files.so.Dclose(labels);
	return rc;
}

static int refuse_no_samples(const struct hdf5 *d, struct err *err)
{
	struct buf why;
	int rc;

	buf_init(&why, 4096);
	data_account_say_left(&d->base.account, 1, &why);
	rc = err_set(err, ERR_USAGE, "%.200s: no images to train on%s%.250s", d->base.path, why.len ? ": " : "",
		     why.len ? why.data : "");
	buf_done(&why);
	return rc;
}

/* Lists the usable rows. Without an array for evaluation, a share of those of training is for it. */
static int list_hdf5_samples(struct hdf5 *d, double val_share, struct err *err)
{
	const struct rng_key key = { rng_stream("hdf5"), rng_stream("validation") };

	d->one_array = !d->images[SPLIT_VAL];
	for (int s = 0; s < SPLIT_COUNT; s++)
		d->row[s] = mem_array((size_t)d->rows[d->one_array ? SPLIT_TRAIN : s], sizeof(*d->row[s]));
	for (int a = 0; a < SPLIT_COUNT; a++)
		for (int64_t i = 0; i < d->rows[a]; i++) {
			bool val = a == SPLIT_VAL ||
				   (d->one_array && val_share > 0 && rng_uniform(key, (uint64_t)i) < val_share);

			if (d->label[a][i] >= 0)
				d->row[val][d->base.n_samples[val]++] = (uint32_t)i;
		}
	return d->base.n_samples[SPLIT_TRAIN] ? 0 : refuse_no_samples(d, err);
}

/* Sets classes, statistics and hash: reads all images once. */
static int describe_hdf5(struct hdf5 *d, const struct dataset_opts *o, struct err *err)
{
	bool *train = mem_array((size_t)d->rows[SPLIT_TRAIN], sizeof(*train));
	uint32_t crc[3] = { 0 };
	int32_t most = -1;
	int rc = 0;

	for (int64_t i = 0; i < d->base.n_samples[SPLIT_TRAIN]; i++)
		train[d->row[SPLIT_TRAIN][i]] = true;
	for (int s = 0; !rc && s < SPLIT_COUNT; s++) {
		for (int64_t i = 0; i < d->rows[s]; i++)
			most = d->label[s][i] > most ? d->label[s][i] : most;
		crc[2] = crc32c(crc[2], d->label[s], (size_t)d->rows[s] * sizeof(**d->label));
		if (d->images[s])
			rc = measure_split(d, (enum split)s, s == SPLIT_TRAIN ? train : NULL, &crc[s], err);
	}
	free(train);
	if (!rc && o->classes && most >= o->classes)
		rc = err_set(err, ERR_USAGE, "%.200s: label %d must be below %d classes", d->base.path, most,
			     o->classes);
	d->base.classes = o->classes ? o->classes : most + 1;
	snprintf(d->base.hash, sizeof(d->base.hash), "hdf5-%08x-%08x-%08x", crc[0], crc[1], crc[2]);
	return rc;
}

static void hdf5_close(struct dataset *base)
{
	struct hdf5 *d = (struct hdf5 *)base;

	for (int s = 0; s < SPLIT_COUNT; s++) {
		if (d->images[s] > 0)
			d->files.so.Dclose(d->images[s]);
		free(d->label[s]);
		free(d->row[s]);
	}
	hdf5_files_close(&d->files);
	label_names_done(&d->found);
	buf_done(&d->classes);
	free(d->class_names);
	pthread_mutex_destroy(&d->lock);
	free(d->base.path);
	free(d);
}

static enum data_account_fate decide_hdf5_fate(void *user, const char *name, char why[DATA_ACCOUNT_TEXT_BYTES])
{
	const struct hdf5 *d = user;

	(void)why;
	for (int i = 0; i < d->files.n; i++)
		if (!strcmp(strrchr(d->files.path[i], '/') + 1, name))
			return DATA_ACCOUNT_USED;
	return DATA_ACCOUNT_LEFT;
}

/* Counts files, and arrays that are not used. */
static void account_hdf5(struct hdf5 *d)
{
	struct data_account *a = &d->base.account;
	const char *path = d->base.path;

	if (d->files.n == 1 && !strcmp(d->files.path[0], path))
		data_account_use(a, basename(path));
	else
		data_account_walk(a, path, &(struct data_account_rule){ decide_hdf5_fate, d });
	hdf5_account(&d->files, d->images, SPLIT_COUNT, a);
}

/* Opens a file or a folder of files. Implements dataset_ops.open. */
static int hdf5_open(struct dataset **ret, const struct dataset_opts *o, struct err *err)
{
	struct hdf5 *d = mem_zalloc(sizeof(*d));
	int rc;

	d->base.path = mem_strdup(o->path);
	d->base.ops = &dataset_hdf5;
	pthread_mutex_init(&d->lock, NULL);
	label_names_init(&d->found);
	buf_init(&d->classes, (size_t)1 << 31);
	hdf5_files_find(o->path, &d->files);
	rc = hdf5_files_open(&d->files, err);
	for (int s = 0; !rc && s < SPLIT_COUNT; s++)
		rc = open_hdf5_split(d, (enum split)s, err);
	if (!rc)
		rc = number_hdf5_classes(d, err);
	if (!rc)
		rc = list_hdf5_samples(d, o->val_share, err);
	if (!rc)
		rc = describe_hdf5(d, o, err);
	if (!rc)
		account_hdf5(d);
	if (rc) {
		hdf5_close(&d->base);
		return rc;
	}
	*ret = &d->base;
	return 0;
}

/* [C,H,W] to [H,W,C]. */
static void interleave_planes(const struct hdf5 *d, const char *from, char *to)
{
	const size_t channels = (size_t)d->base.channels, plane = (size_t)d->base.height * (size_t)d->base.width;

	for (size_t c = 0; c < channels; c++)
		for (size_t i = 0; i < plane; i++)
			memcpy(to + (i * channels + c) * d->pixel_bytes, from + (c * plane + i) * d->pixel_bytes,
			       d->pixel_bytes);
}

static int32_t hdf5_label_of(const struct dataset *base, enum split split, int64_t index)
{
	const struct hdf5 *d = (const struct hdf5 *)base;

	return d->label[d->one_array ? SPLIT_TRAIN : split][d->row[split][index]];
}

static int hdf5_read(const struct dataset *base, const struct dataset_read *r, struct err *err)
{
	struct hdf5 *d = (struct hdf5 *)base;
	const int64_t row = d->row[r->split][r->index];
	const enum split array = d->one_array ? SPLIT_TRAIN : r->split;
	char *planes = d->planar && r->pixels ? mem_alloc(pixels_count(base) * d->pixel_bytes) : NULL;
	bool good = true;

	*r->label = hdf5_label_of(base, r->split, r->index);
	if (r->pixels)
		good = read_image_rows(d, array, row, 1, planes ? planes : r->pixels);
	if (good && planes)
		interleave_planes(d, planes, r->pixels);
	free(planes);
	return good ? 0 : err_set(err, ERR_IO, "%.300s: image %lld cannot be read", base->path, (long long)row);
}

#else

static int hdf5_open(struct dataset **ret, const struct dataset_opts *o, struct err *err)
{
	(void)ret;
	return err_set(err, ERR_USAGE, "%.300s: HDF5 needs libhdf5 (Debian: libhdf5-dev), which this build lacks",
		       o->path);
}

#endif

const struct dataset_ops dataset_hdf5 = {
	.name = "hdf5",
	.expects = "*.h5, *.hdf5 (arrays of images and labels)",
	.probe = hdf5_probe,
	.open = hdf5_open,
#ifdef HAVE_HDF5
	.read = hdf5_read,
	.close = hdf5_close,
	.label = hdf5_label_of,
#endif
};
