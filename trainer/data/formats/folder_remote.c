/* SPDX-License-Identifier: Apache-2.0 */
/* folder_remote.c: lists all objects, or reads an index, and sorts the names in the order of a walk over folders.
 * Then one pass assigns classes and splits. */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/text.h"
#include "tracker/mem/mem.h"
#include "trainer/data/container/shard_list.h"
#include "trainer/data/corpus/texts.h"
#include "trainer/data/formats/folder.h"
#include "trainer/data/pictures/picture.h"

#define NAMES_MAX ((size_t)4 << 30)
#define INDEX_BYTES_MAX ((size_t)1 << 30)

struct remote_file {
	size_t name; /* offset in names; the version follows the name's NUL */
	uint64_t bytes;
};

struct remote_listing {
	struct buf names;
	struct buf files;      /* struct file */
	size_t root;	       /* bytes of the address in front of the names */
	struct objects *store; /* receives the pictures */
	int64_t texts;	       /* files that dptrain tokenize reads */
	char shard[DATA_ACCOUNT_TEXT_BYTES]; /* the first one in a folder; "": none */
	bool escapes;	       /* names are escaped, because they become parts of a URL */
	const struct folder_remote_opts *o;
};

static const char *get_listed_name(const struct remote_listing *l, size_t i)
{
	return (const char *)l->names.data + ((const struct remote_file *)(const void *)l->files.data)[i].name;
}

static void leave_remote_file(struct remote_listing *l, const char *name)
{
	char why[DATA_ACCOUNT_TEXT_BYTES];
	enum text_packing packing;

	l->texts += texts_kind(name, &packing) != TEXT_NONE;
	if (!l->shard[0] && strchr(name, '/') && !strstr(name, ".json") && shard_list_probe(name))
		snprintf(l->shard, sizeof(l->shard), "%s", name);
	if (picture_unsupported(name, why))
		data_account_leave_file(l->o->account, name, "%s", why);
	else
		data_account_leave_unknown(l->o->account, name);
}

static int collect_remote_file(void *user, const struct objects_entry *e, struct err *err)
{
	struct remote_listing *l = user;
	struct remote_file f = { l->names.len, e->bytes };

	if (data_account_hides(e->name)) {
		l->o->account->hidden++;
		return 0;
	}
	if (!picture_is_one(e->name)) {
		leave_remote_file(l, e->name);
		return 0;
	}
	buf_add(&l->names, e->name, strlen(e->name) + 1);
	buf_add(&l->names, e->version, strlen(e->version) + 1);
	buf_add(&l->files, &f, sizeof(f));
	if (buf_failed(&l->names) || buf_failed(&l->files))
		return err_set(err, ERR_LIMIT, "%.200s: too many files", l->o->address);
	return 0;
}

/* Keeps a folder's content together: a slash sorts before every other character. */
static int compare_remote_paths(const void *a, const void *b, void *names)
{
	const unsigned char *x = (const unsigned char *)names + ((const struct remote_file *)a)->name,
			    *y = (const unsigned char *)names + ((const struct remote_file *)b)->name;

	for (; *x && *x == *y; x++, y++)
		;
	if (*x == *y)
		return 0;
	if (*x == '/' || *y == '/')
		return !*x || (*x == '/' && *y) ? -1 : 1;
	return *x < *y ? -1 : 1;
}

static bool is_in_folder(const char *name, const char *part)
{
	size_t n = strlen(part);

	return !n || (!strncmp(name, part, n) && name[n] == '/');
}

static bool listing_has_part(const struct remote_listing *l, size_t n, const char *part)
{
	for (size_t i = 0; i < n; i++)
		if (is_in_folder(get_listed_name(l, i), part))
			return true;
	return false;
}

/* Extracts the class folder of a file in the part. False: the file is not in a class folder. */
static bool extract_class_name(const char *name, const char *part, char ret[NAME_MAX + 1])
{
	const char *from = name + strlen(part) + (*part != '\0'), *slash = strchr(from, '/');

	if (!slash || slash - from > NAME_MAX)
		return false;
	snprintf(ret, NAME_MAX + 1, "%.*s", (int)(slash - from), from);
	return true;
}

static int find_remote_label(const struct folder_remote *f, const char *name)
{
	for (int i = f->n_classes - 1; i >= 0; i--) /* the newest class matches most often */
		if (!strcmp(f->classes[i], name))
			return i;
	return -1;
}

/* Adds a picture to the store under its full address. */
static int add_picture_object(const struct remote_listing *l, const char *name, uint64_t bytes, struct err *err)
{
	const char *root = l->o->address;
	struct buf address;
	int object;

	buf_init(&address, PATH_MAX);
	buf_add(&address, root, l->root);
	if (l->root && root[l->root - 1] != '/')
		buf_addc(&address, '/');
	if (l->escapes)
		text_add_escaped(&address, name, "-._~/");
	else
		buf_add(&address, name, strlen(name));
	buf_addc(&address, '\0');
	if (buf_failed(&address))
		object = err_set(err, ERR_USAGE, "%.300s: %.200s: the name is too long", root, name);
	else
		object = objects_add_listed(l->store, address.data,
					    &(struct objects_entry){ name, bytes, name + strlen(name) + 1 }, err);
	buf_done(&address);
	return object;
}

static int add_remote_picture(struct folder_remote *f, const struct remote_listing *l, size_t i, int label,
			      struct err *err)
{
	const char *name = get_listed_name(l, i);
	uint64_t bytes = ((const struct remote_file *)(const void *)l->files.data)[i].bytes;
	int object = add_picture_object(l, name, bytes, err);

	if (object < 0)
		return object;
	samples_add(&f->samples,
		    &(struct sample){ .bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX,
				      .object = (uint32_t)object,
				      .label = label },
		    name);
	return 0;
}

struct remote_part {
	const char *folder; /* "": the root */
	enum split holds;   /* split of its files … */
	double val_share;   /* … except this share of training files, which are for validation */
};

/* Adds the part's files that belong to the split. */
static int add_remote_part(struct folder_remote *f, const struct remote_listing *l, const struct remote_part *p,
			   enum split split, struct err *err)
{
	size_t n = l->files.len / sizeof(struct remote_file);
	char class_name[NAME_MAX + 1];
	int rc = 0;

	for (size_t i = 0; !rc && i < n; i++) {
		const char *name = get_listed_name(l, i);
		int label;

		if (!is_in_folder(name, p->folder) || !extract_class_name(name, p->folder, class_name))
			continue;
		label = find_remote_label(f, class_name);
		if (label < 0 && p->holds == SPLIT_VAL)
			return err_set(err, ERR_USAGE, "%.200s: %.100s/%.100s: a class that the training images do not "
						       "have", l->o->address, p->folder, class_name);
		if (label < 0) { /* files are sorted by path, so labels follow the order of class names */
			mem_push(&f->classes, &f->n_classes, &f->cap, mem_strdup(class_name));
			label = f->n_classes - 1;
		}
		if ((p->holds == SPLIT_VAL || folder_is_val(name, p->val_share) ? SPLIT_VAL : SPLIT_TRAIN) == split)
			rc = add_remote_picture(f, l, i, label, err);
	}
	return rc;
}

/* Counts a picture as used if it is in a class folder of one of the parts. */
static void count_remote_picture(const struct remote_listing *l, const char *name, const struct remote_part *train,
				 const struct remote_part *val)
{
	char class_name[NAME_MAX + 1];

	for (int i = 0; i < 2; i++) {
		const struct remote_part *p = i ? val : train;

		if (is_in_folder(name, p->folder) && extract_class_name(name, p->folder, class_name)) {
			data_account_use(l->o->account, name);
			return;
		}
	}
	for (int i = 0; val->holds == SPLIT_VAL && folder_val_name(i); i++)
		if (is_in_folder(name, folder_val_name(i)) && strcmp(folder_val_name(i), val->folder)) {
			data_account_leave_file(l->o->account, name, "%s is not used, because there is a %s",
						folder_val_name(i), val->folder);
			return;
		}
	data_account_leave_file(l->o->account, name, "images outside of the class folders");
}

/* Says what is at an address without pictures to train on. */
static int refuse_address(const struct remote_listing *l, struct err *err)
{
	const struct data_account *a = l->o->account;

	if (!data_account_used(a) && !data_account_left(a, DATA_ACCOUNT_FILES) && !a->hidden)
		return err_set(err, ERR_USAGE, "%.200s: nothing is there: compare the address with that of the set",
			       l->o->address);
	if (l->shard[0])
		return err_set(err, ERR_USAGE,
			       "%.200s: its shards are in folders (%.150s): name the folder with those of training, "
			       "and by --val-path that of evaluation",
			       l->o->address, l->shard);
	if (l->texts)
		return err_set(err, ERR_USAGE,
			       "%.150s: holds %lld text%s and no shards: dptrain tokenize --data-path %.150s --out DIR "
			       "makes a set of them, DIR",
			       l->o->address, (long long)l->texts, l->texts > 1 ? "s" : "", l->o->address);
	return err_set(err, ERR_USAGE,
		       "%.200s: no shards to train on and no pictures in class folders: expected CLASS/*.jpg or "
		       "train/CLASS/*.jpg",
		       l->o->address);
}

/* Sorts the files, then adds those of training and those of validation. */
static int split_remote_files(struct folder_remote *f, struct remote_listing *l, struct err *err)
{
	size_t n = l->files.len / sizeof(struct remote_file);
	bool parts = listing_has_part(l, n, "train");
	struct remote_part train = { .folder = parts ? "train" : "", .holds = SPLIT_TRAIN }, val = train;
	int rc;

	if (n)
		qsort_r(l->files.data, n, sizeof(struct remote_file), compare_remote_paths, l->names.data);
	for (int i = 0; parts && val.holds == SPLIT_TRAIN && folder_val_name(i); i++)
		if (listing_has_part(l, n, folder_val_name(i)))
			val = (struct remote_part){ .folder = folder_val_name(i), .holds = SPLIT_VAL };
	if (val.holds == SPLIT_TRAIN)
		train.val_share = val.val_share = l->o->val_share;
	rc = add_remote_part(f, l, &train, SPLIT_TRAIN, err);
	f->n_train = objects_count(l->store);
	if (!rc)
		rc = add_remote_part(f, l, &val, SPLIT_VAL, err);
	if (!rc && f->n_train && val.holds == SPLIT_VAL && objects_count(l->store) == f->n_train)
		rc = err_set(err, ERR_USAGE,
			     "%.200s: the images of %s are not in class folders: move them into %s/CLASS/, or remove "
			     "the folder",
			     l->o->address, val.folder, val.folder);
	for (size_t i = 0; !rc && i < n; i++)
		count_remote_picture(l, get_listed_name(l, i), &train, &val);
	if (!rc && !f->n_train)
		rc = refuse_address(l, err);
	return rc ? rc : samples_end(&f->samples, err);
}

bool folder_remote_is_index(const char *address)
{
	size_t n = strlen(address);

	return strstr(address, "://") && n > 4 && !strcmp(address + n - 4, ".txt") && !strstr(address, "::");
}

/* Parses "1234 train/ant/a.jpg". */
static int parse_index_line(struct remote_listing *l, const char *line, struct err *err)
{
	size_t digits = strspn(line, "0123456789");
	struct objects_entry e = { line + digits + 1, strtoull(line, NULL, 10), "" };

	if (!*line)
		return 0;
	if (!digits || digits > 18 || line[digits] != ' ' || *e.name == '/' || strstr(e.name, "//"))
		return err_set(err, ERR_USAGE,
			       "%.200s: %.60s: expected a file's size and its path relative to the index "
			       "(find . -type f -printf '%%s %%P\\n'); dptrain tokenize makes a set of a text",
			       l->o->address, line);
	return collect_remote_file(l, &e, err);
}

static int read_folder_index(struct remote_listing *l, struct err *err)
{
	struct buf text;
	int rc;

	buf_init(&text, INDEX_BYTES_MAX + 1);
	rc = objects_text(l->o->address, &l->o->store, INDEX_BYTES_MAX, &text, err);
	buf_addc(&text, '\0');
	for (char *line = text.data, *next; !rc && line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		line[strcspn(line, "\r")] = '\0';
		rc = parse_index_line(l, line, err);
	}
	buf_done(&text);
	return rc;
}

int folder_remote_find(struct folder_remote *ret, struct objects *store, const struct folder_remote_opts *o,
		       struct err *err)
{
	const bool index = folder_remote_is_index(o->address);
	struct remote_listing l = {
		.o = o, .store = store, .root = strlen(o->address), .escapes = !strncmp(o->address, "http", 4)
	};
	const struct objects_lister list = { true, o->store.timeout_s, collect_remote_file, &l };
	int rc;

	if (index)
		l.root = (size_t)(strrchr(o->address, '/') + 1 - o->address);

	buf_init(&l.names, NAMES_MAX);
	buf_init(&l.files, NAMES_MAX);
	samples_init(&ret->samples);
	rc = index ? read_folder_index(&l, err) : objects_list(o->address, &list, err);
	if (!rc)
		rc = split_remote_files(ret, &l, err);
	buf_done(&l.names);
	buf_done(&l.files);
	return rc;
}

void folder_remote_done(struct folder_remote *f)
{
	for (int i = 0; i < f->n_classes; i++)
		free(f->classes[i]);
	free(f->classes);
	samples_done(&f->samples);
	*f = (struct folder_remote){ .n_train = 0 };
}
