/* SPDX-License-Identifier: Apache-2.0 */
/* folder_scan.c: walks the class folders of a data set and sorts its files into classes and splits. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"
#include "trainer/data/container/shard_list.h"
#include "trainer/data/formats/folder.h"
#include "trainer/data/formats/image_set.h"

#define DEPTH_MAX 16  /* folders below a class folder */
#define CLASS_DEPTH 2 /* depth of a class folder below the data path, at most */
#define NAMES_MAX ((size_t)4 << 30)
#define CLASSES_MAX 1000000
#define POINTER_BYTES_MAX 200 /* of a file that Git LFS has not fetched */

static const char *const val_names[] = { "val", "valid", "validation", "test" };

struct folder_walk {
	struct folder_files *f;
	const char *root;
	double val_share;
	struct err *err;
	struct data_account *account;
	bool looks;
	/* Of the class being walked: */
	struct data_account_path path;
	int label;
	enum split split;
	int64_t found, unsupported;
	char why[DATA_ACCOUNT_TEXT_BYTES]; /* reason for the last unsupported picture */
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
	return !data_account_hides(e->d_name);
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

/* Counts a file as used or as left out. A set whose first image was not pulled is refused. */
static int account_folder_file(struct folder_walk *s, const char *name, bool first)
{
	char path[PATH_MAX];
	struct stat st = { .st_size = POINTER_BYTES_MAX };
	int rc = 0;

	if ((s->looks || first) && file_join(path, sizeof(path), s->root, name) && !stat(path, &st) &&
	    st.st_size < POINTER_BYTES_MAX)
		rc = image_set_check_pointer(path, first ? s->err : NULL);
	if (s->looks && (rc || !st.st_size))
		data_account_leave_file(s->account, name, rc ? "pointers of Git LFS: run git lfs pull" : "empty");
	else
		data_account_use(s->account, name);
	return first ? rc : 0;
}

static int add_folder_file(struct folder_walk *s, const char *name)
{
	const bool val = !s->f->has_val && folder_is_val(name, s->val_share);
	struct folder_split *to = &s->f->split[val ? SPLIT_VAL : s->split];
	size_t at = s->f->names.len;

	mem_reserve(&to->file, &to->cap, to->n + 1);
	buf_add(&s->f->names, name, strlen(name) + 1);
	if (to->n >= DATASET_SAMPLES_MAX || buf_failed(&s->f->names))
		return err_set(s->err, ERR_LIMIT, "%.300s: too many files", s->root);
	to->file[to->n++] = (struct folder_file){ at, s->label };
	s->found++;
	return account_folder_file(s, name, to->n == 1);
}

static void leave_class_file(struct folder_walk *s, const char *name)
{
	char why[DATA_ACCOUNT_TEXT_BYTES];

	if (picture_unsupported(name, why)) {
		data_account_leave_file(s->account, name, "%s", why);
		s->unsupported++;
		snprintf(s->why, sizeof(s->why), "%s", why);
	} else {
		data_account_leave_unknown(s->account, name);
	}
}

static int walk_class_folder(struct folder_walk *s, const char *name, int depth);

/* Adds a picture, walks a folder, or counts the entry as left out; name is relative to the root. */
static int walk_class_entry(struct folder_walk *s, const char *name, unsigned char type, int depth)
{
	char path[PATH_MAX];
	struct stat st;

	if (type != DT_REG) {
		snprintf(path, sizeof(path), "%.2000s/%.2000s", s->root, name);
		if (stat(path, &st)) {
			data_account_leave_file(s->account, name, "%s", strerror(errno));
			snprintf(s->why, sizeof(s->why), "%s", strerror(errno));
			s->unsupported += picture_is_one(name);
			return 0;
		}
		if (S_ISDIR(st.st_mode) && data_account_enter(&s->path, &st, CLASS_DEPTH + depth + 1))
			return walk_class_folder(s, name, depth + 1);
		if (!S_ISREG(st.st_mode)) {
			data_account_leave_file(s->account, name,
					   S_ISDIR(st.st_mode) ? "a link to a folder above it" : "not a regular file");
			return 0;
		}
	}
	if (picture_is_one(name))
		return add_folder_file(s, name);
	leave_class_file(s, name);
	return 0;
}

/* Adds the images below root/name at any depth; name is relative to the root. */
static int walk_class_folder(struct folder_walk *s, const char *name, int depth)
{
	char path[PATH_MAX];
	struct dirent **list;
	int n, rc = 0;

	if (depth > DEPTH_MAX || snprintf(path, sizeof(path), "%s/%s", s->root, name) >= (int)sizeof(path))
		return err_set(s->err, ERR_USAGE, "%.200s/%.200s: folders are nested too deeply: at most %d levels",
			       s->root, name, DEPTH_MAX);
	n = scandir(path, &list, NULL, compare_dirents);
	if (n < 0)
		return err_set_errno(s->err, errno, "%.400s", path);
	for (int i = 0; i < n && !rc; i++) {
		const struct dirent *e = list[i];
		char below[PATH_MAX];

		if (!is_visible_entry(e))
			data_account_hide(s->account, e->d_name);
		else if (snprintf(below, sizeof(below), "%s/%s", name, e->d_name) < (int)sizeof(below))
			rc = walk_class_entry(s, below, e->d_type, depth);
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
	names = mem_array((size_t)n, sizeof(*names));
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%.2000s/%s/%.1000s", root, part, list[i]->d_name);
		if (is_directory(path))
			names[count++] = mem_strdup(list[i]->d_name);
	}
	free_dirents(list, n);
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

/* Begins the path of the walk with the data path, the part and the class folder `name`. */
static void enter_class_folder(struct folder_walk *s, const char *part, const char *name)
{
	const char *const folders[CLASS_DEPTH + 1] = { "", part, name };
	char path[PATH_MAX];
	struct stat st;

	for (int i = 0; i <= CLASS_DEPTH; i++) {
		snprintf(path, sizeof(path), "%.2000s/%.2000s", s->root, folders[i]);
		if (stat(path, &st) || !data_account_enter(&s->path, &st, i))
			s->path.inode[i] = 0; /* the part is the data path itself */
	}
}

/* Lists the images of one class folder, at any depth. */
static int walk_class(struct folder_walk *s, const char *part, const char *class_name)
{
	char below[PATH_MAX];
	int rc;

	s->found = s->unsupported = 0;
	s->label = find_class_label(s->f, class_name);
	if (s->label < 0)
		return err_set(s->err, ERR_USAGE,
			       "%.200s/%s/%.100s: the class has no training images: add them or remove the folder",
			       s->root, part, class_name);
	snprintf(below, sizeof(below), "%s%s%s", part, *part ? "/" : "", class_name);
	enter_class_folder(s, part, below);
	rc = walk_class_folder(s, below, 0);
	if (!rc && !s->found && s->unsupported)
		return err_set(s->err, ERR_USAGE, "%.200s/%.200s: none of the %lld images can be read: %.200s", s->root,
			       below, (long long)s->unsupported, s->why);
	if (!rc && !s->found && s->split == SPLIT_TRAIN)
		return err_set(s->err, ERR_USAGE,
			       "%.200s/%.200s: the class has no images (%s): remove the folder or fill it", s->root,
			       below, PICTURE_ENDINGS);
	return rc;
}

static int walk_split_folder(struct folder_walk *s, const char *part, enum split split)
{
	char **names = NULL;
	int n = 0, rc = list_class_names(s->root, part, &names, &n, s->err);

	s->split = split;
	for (int i = 0; !rc && i < n; i++)
		rc = walk_class(s, part, names[i]);
	free_class_names(names, n);
	return rc;
}

static bool has_subfolder(const char *root, const char *part)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.2000s/%.2000s", root, part);
	return is_directory(path);
}

/* Counts the images directly in root/part. */
static int64_t count_loose_images(const char *root, const char *part)
{
	char path[PATH_MAX];
	struct dirent *e;
	int64_t n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%.2000s/%.100s", root, part);
	d = opendir(path);
	while (d && (e = readdir(d)))
		n += is_visible_entry(e) && picture_is_one(e->d_name);
	if (d)
		closedir(d);
	return n;
}

/* Refuses a folder of a split without images in class folders. */
static int fail_without_classes(const struct folder_walk *s, const char *part)
{
	const int64_t loose = count_loose_images(s->root, part);

	if (loose)
		return err_set(s->err, ERR_USAGE,
			       "%.200s/%s: its %lld images are not in class folders: move them into %s/CLASS/, or "
			       "remove the folder",
			       s->root, part, (long long)loose, part);
	return err_set(s->err, ERR_USAGE, "%.200s/%s: has no images in class folders: fill it or remove it", s->root,
		       part);
}

/* Returns the name of the validation folder; NULL: none. */
static const char *find_val_folder(const char *root)
{
	for (int i = 0; folder_val_name(i); i++)
		if (has_subfolder(root, folder_val_name(i)))
			return folder_val_name(i);
	return NULL;
}

/* Which folders of the data path are those of the splits. */
struct folder_parts {
	const char *train, *val; /* "": the data path itself; val NULL: none */
};

/* Returns true if name is below part; *ret_rest: what follows, "CLASS/a.jpg". */
static bool is_below_part(const char *name, const char *part, const char **ret_rest)
{
	const size_t n = part ? strlen(part) : 0;

	*ret_rest = name + n + (n > 0);
	return part && (!n || (!strncmp(name, part, n) && name[n] == '/'));
}

/* The class folders are counted by the scan. */
static enum data_account_fate decide_other_fate(void *user, const char *name, char why[DATA_ACCOUNT_TEXT_BYTES])
{
	const struct folder_parts *p = user;
	const char *rest;
	size_t n = strlen(name);
	char first[32];

	if (n && name[n - 1] == '/') {
		const bool below = is_below_part(name, p->train, &rest) || is_below_part(name, p->val, &rest);

		return below && *rest ? DATA_ACCOUNT_COUNTED : DATA_ACCOUNT_LEFT;
	}
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(name, "/"), name);
	for (int i = 0; strchr(name, '/') && folder_val_name(i); i++)
		if (!strcmp(first, folder_val_name(i)) && p->val && strcmp(first, p->val))
			snprintf(why, DATA_ACCOUNT_TEXT_BYTES, "%s is not used, because there is a %s", first, p->val);
	if (!*why && picture_is_one(name))
		snprintf(why, DATA_ACCOUNT_TEXT_BYTES, "images outside of the class folders");
	return DATA_ACCOUNT_LEFT;
}

int folder_scan(struct folder_files *ret, const struct folder_scan_opts *o, struct err *err)
{
	bool parts = has_subfolder(o->path, "train");
	struct folder_parts part = { parts ? "train" : "", parts ? find_val_folder(o->path) : NULL };
	struct folder_files f = { .has_val = part.val != NULL };
	struct folder_walk s = {
		.f = &f, .root = o->path, .val_share = o->val_share, .account = o->account,
		.looks = o->looks, .err = err
	};
	int rc;

	buf_init(&f.names, NAMES_MAX);
	rc = list_class_names(o->path, part.train, &f.classes, &f.n_classes, err);
	if (!rc && f.n_classes < 1)
		rc = fail_without_classes(&s, part.train);
	if (!rc && f.n_classes > CLASSES_MAX)
		rc = err_set(err, ERR_USAGE, "%.300s: has %d class folders: expected at most %d", o->path, f.n_classes,
			     CLASSES_MAX);
	if (!rc)
		rc = walk_split_folder(&s, part.train, SPLIT_TRAIN);
	if (!rc && part.val)
		rc = walk_split_folder(&s, part.val, SPLIT_VAL);
	if (!rc && part.val && !f.split[SPLIT_VAL].n)
		rc = fail_without_classes(&s, part.val);
	if (rc) {
		folder_files_done(&f);
		return rc;
	}
	data_account_walk(o->account, o->path, &(struct data_account_rule){ decide_other_fate, &part });
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

/* Returns true if an image is in the folder, or with levels > 0 in a folder below it. */
static bool has_image_below(const char *folder, int levels)
{
	DIR *d = opendir(folder);
	char path[PATH_MAX], why[DATA_ACCOUNT_TEXT_BYTES];
	struct dirent *e;
	bool found = false;

	while (d && !found && (e = readdir(d)))
		found = is_visible_entry(e) && (picture_is_one(e->d_name) || picture_unsupported(e->d_name, why));
	if (d && !found && levels) {
		rewinddir(d);
		while (!found && (e = readdir(d)))
			if (is_visible_entry(e) && e->d_type != DT_REG &&
			    snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) < (int)sizeof(path) &&
			    is_directory(path))
				found = has_image_below(path, levels - 1);
	}
	if (d)
		closedir(d);
	return found;
}

/* Returns true if a class folder in root/part has an image, at most `levels` folders deeper. */
static bool probe_split_folder(const char *root, const char *part, int levels)
{
	char **names, path[PATH_MAX];
	int n;
	bool found = false;

	if (list_class_names(root, part, &names, &n, NULL))
		return false;
	for (int i = 0; i < n && !found; i++) {
		snprintf(path, sizeof(path), "%.2000s/%s/%.1000s", root, part, names[i]);
		found = has_image_below(path, levels);
	}
	free_class_names(names, n);
	return found;
}

/* Returns true if images deep below the folders of root/part can be those of classes: they are not if root holds
 * shards, or is a folder above a data set (a single folder without images of its own, or one with a folder "train"). */
static bool may_have_deep_images(const char *root, const char *part)
{
	char **names, below[PATH_MAX];
	int n;
	bool may;

	if (shard_list_probe(root) || list_class_names(root, part, &names, &n, NULL))
		return false;
	may = *part || n > 1;
	for (int i = 0; may && !*part && i < n; i++) {
		snprintf(below, sizeof(below), "%.2000s/train", names[i]);
		may = !has_subfolder(root, below);
	}
	free_class_names(names, n);
	return may;
}

bool folder_probe(const char *path)
{
	const char *part = has_subfolder(path, "train") ? "train" : "";

	return probe_split_folder(path, part, 0) ||
	       (may_have_deep_images(path, part) && probe_split_folder(path, part, DEPTH_MAX));
}
