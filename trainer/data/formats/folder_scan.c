/* folder_scan.c: walks the class folders of a data set and sorts its files into classes and splits. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "trainer/data/formats/folder.h"
#include "trainer/data/pictures/picture.h"
#include "trainer/graph/rng.h"

#define DEPTH_MAX 16
#define NAMES_MAX ((size_t)4 << 30)
#define CLASSES_MAX 1000000

static const char *const val_names[] = { "val", "valid", "validation", "test" };

struct folder_walk {
	struct folder_files *f;
	const char *root;
	double val_share;
	struct err *err;
	/* Of the class being walked: */
	int label;
	enum split split;
	int64_t found;
};

static bool is_directory(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static int compare_dirents(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_visible_entry(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static void free_dirents(struct dirent **list, int n)
{
	for (int i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

bool folder_is_val(const char *name, double val_share)
{
	return val_share > 0 && (double)(rng_stream(name) >> 11) / 9007199254740992.0 < val_share;
}

const char *folder_val_name(int i)
{
	return (size_t)i < sizeof(val_names) / sizeof(val_names[0]) ? val_names[i] : NULL;
}

static enum split choose_file_split(const struct folder_walk *s, const char *name)
{
	return !s->f->has_val && folder_is_val(name, s->val_share) ? SPLIT_VAL : s->split;
}

static int add_folder_file(struct folder_walk *s, const char *name)
{
	struct folder_split *to = &s->f->split[choose_file_split(s, name)];
	size_t at = s->f->names.len;

	if (to->n == to->cap) {
		int64_t cap = to->cap ? 2 * to->cap : 1024;
		struct folder_file *more = realloc(to->file, (size_t)cap * sizeof(*more));

		if (!more)
			return err_set(s->err, ERR_NOMEM, "out of memory: the names of %lld images", (long long)cap);
		to->file = more;
		to->cap = cap;
	}
	buf_add(&s->f->names, name, strlen(name) + 1);
	if (to->n >= DATASET_SAMPLES_MAX || buf_failed(&s->f->names))
		return err_set(s->err, ERR_NOMEM, "%.300s: too many files", s->root);
	to->file[to->n++] = (struct folder_file){ at, s->label };
	s->found++;
	return 0;
}

/* Adds the images below root/name at any depth; name is relative to the root. */
static int walk_class_folder(struct folder_walk *s, const char *name, int depth)
{
	char path[PATH_MAX];
	struct dirent **list;
	int n, rc = 0;

	if (depth > DEPTH_MAX || snprintf(path, sizeof(path), "%s/%s", s->root, name) >= (int)sizeof(path))
		return err_set(s->err, ERR_USAGE, "%.200s/%.200s: folders are nested too deeply: at most 16 levels",
			       s->root, name);
	n = scandir(path, &list, is_visible_entry, compare_dirents);
	if (n < 0)
		return err_set_errno(s->err, errno, "%.400s", path);
	for (int i = 0; i < n && !rc; i++) {
		char below[PATH_MAX];

		if (snprintf(below, sizeof(below), "%s/%s", name, list[i]->d_name) >= (int)sizeof(below))
			continue;
		if (picture_is_one(list[i]->d_name)) {
			rc = add_folder_file(s, below);
			continue;
		}
		snprintf(path, sizeof(path), "%.2000s/%.2000s", s->root, below);
		if (list[i]->d_type != DT_REG && is_directory(path))
			rc = walk_class_folder(s, below, depth + 1);
	}
	free_dirents(list, n);
	return rc;
}

/* Returns the sorted names of the folders in root/part ("": the root itself). */
static int list_class_names(const char *root, const char *part, char ***ret, int *ret_n, struct err *err)
{
	char path[PATH_MAX];
	struct dirent **list;
	char **names;
	int n, count = 0;

	snprintf(path, sizeof(path), "%.2000s/%s", root, part);
	n = scandir(path, &list, is_visible_entry, compare_dirents);
	if (n < 0)
		return err_set_errno(err, errno, "data path %.400s", path);
	names = calloc((size_t)n + 1, sizeof(*names));
	for (int i = 0; names && i < n; i++) {
		snprintf(path, sizeof(path), "%.2000s/%s/%.1000s", root, part, list[i]->d_name);
		if (is_directory(path))
			names[count++] = strdup(list[i]->d_name);
	}
	free_dirents(list, n);
	if (!names)
		return err_set(err, ERR_NOMEM, "out of memory: class names");
	*ret = names;
	*ret_n = count;
	return 0;
}

static void free_class_names(char **names, int n)
{
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

static int find_class_label(const struct folder_files *f, const char *name)
{
	for (int low = 0, high = f->n_classes - 1; low <= high;) {
		int middle = (low + high) / 2, order = strcmp(name, f->classes[middle]);

		if (!order)
			return middle;
		*(order < 0 ? &high : &low) = order < 0 ? middle - 1 : middle + 1;
	}
	return -1;
}

static int walk_class(struct folder_walk *s, const char *part, const char *class_name)
{
	char below[PATH_MAX];
	int rc;

	s->found = 0;
	s->label = find_class_label(s->f, class_name);
	if (s->label < 0)
		return err_set(s->err, ERR_USAGE,
			       "%.200s/%s/%.100s: the class has no training images: add them or remove the folder",
			       s->root, part, class_name);
	snprintf(below, sizeof(below), "%s%s%s", part, *part ? "/" : "", class_name);
	rc = walk_class_folder(s, below, 0);
	if (!rc && !s->found && s->split == SPLIT_TRAIN)
		return err_set(s->err, ERR_USAGE,
			       "%.200s/%.200s: the class has no images (.jpg, .jpeg, .png): remove the folder "
			       "or fill it",
			       s->root, below);
	return rc;
}

static int walk_split_folder(struct folder_walk *s, const char *part, enum split split)
{
	char **names = NULL;
	int n = 0, rc = list_class_names(s->root, part, &names, &n, s->err);

	s->split = split;
	for (int i = 0; !rc && i < n; i++)
		rc = names[i] ? walk_class(s, part, names[i]) :
				err_set(s->err, ERR_NOMEM, "out of memory: class names");
	free_class_names(names, n);
	return rc;
}

static bool has_subfolder(const char *root, const char *part)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.2000s/%s", root, part);
	return is_directory(path);
}

/* Returns the name of the validation folder; NULL: none. */
static const char *find_val_folder(const char *root)
{
	for (int i = 0; folder_val_name(i); i++)
		if (has_subfolder(root, folder_val_name(i)))
			return folder_val_name(i);
	return NULL;
}

int folder_scan(struct folder_files *ret, const char *path, double val_share, struct err *err)
{
	bool parts = has_subfolder(path, "train");
	const char *val = parts ? find_val_folder(path) : NULL;
	struct folder_files f = { .has_val = val != NULL };
	struct folder_walk s = { .f = &f, .root = path, .val_share = val_share, .err = err };
	int rc;

	buf_init(&f.names, NAMES_MAX);
	rc = list_class_names(path, parts ? "train" : "", &f.classes, &f.n_classes, err);
	if (!rc && (f.n_classes < 1 || f.n_classes > CLASSES_MAX))
		rc = err_set(err, ERR_USAGE, "%.300s: has %d class folders: expected 1 to 1000000", path, f.n_classes);
	if (!rc)
		rc = walk_split_folder(&s, parts ? "train" : "", SPLIT_TRAIN);
	if (!rc && val)
		rc = walk_split_folder(&s, val, SPLIT_VAL);
	if (rc) {
		folder_files_done(&f);
		return rc;
	}
	*ret = f;
	return 0;
}

void folder_files_done(struct folder_files *f)
{
	free_class_names(f->classes, f->n_classes);
	for (int s = 0; s < SPLIT_COUNT; s++)
		free(f->split[s].file);
	buf_done(&f->names);
	*f = (struct folder_files){ .n_classes = 0 };
}

const char *folder_name(const struct folder_files *f, enum split s, int64_t i)
{
	return (const char *)f->names.data + f->split[s].file[i].name;
}

/* Returns true if an image is directly in root/part/CLASS, for any class. */
static bool probe_split_folder(const char *root, const char *part)
{
	char **names, path[PATH_MAX];
	int n;
	bool found = false;

	if (list_class_names(root, part, &names, &n, NULL))
		return false;
	for (int i = 0; i < n && !found; i++) {
		DIR *d;
		struct dirent *e;

		snprintf(path, sizeof(path), "%.2000s/%s/%.1000s", root, part, names[i] ? names[i] : "");
		d = opendir(path);
		while (d && !found && (e = readdir(d)))
			found = e->d_name[0] != '.' && picture_is_one(e->d_name);
		if (d)
			closedir(d);
	}
	free_class_names(names, n);
	return found;
}

bool folder_probe(const char *path)
{
	return probe_split_folder(path, has_subfolder(path, "train") ? "train" : "");
}
