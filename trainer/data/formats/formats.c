/* SPDX-License-Identifier: Apache-2.0 */
/* formats.c: the table of formats, and the detection of a folder's format. */
#include "tracker/mem/mem.h"
#include "trainer/data/formats/formats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct dataset_ops *const formats_table[FORMATS_COUNT] = {
#define FORMAT(name) [FORMATS_##name] = &dataset_##name,
#include "trainer/data/formats/formats.def"
#undef FORMAT
};

/* ---- folders of no known format ---- */

#define NEAR_MOST 3
#define ASKED_MOST 1000 /* files of which the first bytes are read */

/* What a folder holds: files by kind, and folders below it that are data sets themselves. */
struct unknown_folder {
	struct data_account account; /* all its files are "used" */
	char near[NEAR_MOST][DATA_ACCOUNT_TEXT_BYTES];
	int n_near;
	char foreign[DATA_ACCOUNT_TEXT_BYTES]; /* a file that foreign_advice knows; "": none so far */
	const char *advice;
	int asked; /* files */
	const char *path;
};

static const struct dataset_ops *find_format(const char *path, int kind);

/* Offers a folder that is at most two levels below: "data", "MNIST/raw". */
static void offer_near_folder(struct unknown_folder *u, const char *name)
{
	char path[CACHE_DIR_PATH_BYTES];
	size_t n = strlen(name) - 1;
	int levels = 0;

	for (size_t i = 0; i < n; i++)
		levels += name[i] == '/';
	if (levels > 1 || u->n_near == NEAR_MOST || n >= sizeof(u->near[0]) ||
	    snprintf(path, sizeof(path), "%s/%.*s", u->path, (int)n, name) >= (int)sizeof(path))
		return;
	for (int i = 0; i < u->n_near; i++)
		if (!strncmp(u->near[i], name, strlen(u->near[i])))
			return;
	if (find_format(path, -1))
		snprintf(u->near[u->n_near++], sizeof(u->near[0]), "%.*s", (int)n, name);
}

static enum data_account_fate collect_unknown_file(void *user, const char *name, char why[DATA_ACCOUNT_TEXT_BYTES])
{
	struct unknown_folder *u = user;
	char path[CACHE_DIR_PATH_BYTES];

	(void)why;
	if (name[strlen(name) - 1] == '/') {
		offer_near_folder(u, name);
	} else if (!u->advice && u->asked++ < ASKED_MOST && cache_dir_join(path, u->path, name)) {
		u->advice = foreign_advice(path);
		snprintf(u->foreign, sizeof(u->foreign), "%.239s", name);
	}
	return DATA_ACCOUNT_USED;
}

static void say_formats(struct buf *out)
{
	for (int i = 0, n = 0; i < FORMATS_COUNT; i++)
		if (formats_table[i]->expects)
			buf_addf(out, "%s%s", n++ ? "; or " : "", formats_table[i]->expects);
}

/* Says what the folder holds, which folders below it are data sets, and what is expected. */
static int fail_not_recognised(const char *path, struct err *err)
{
	struct unknown_folder *u = mem_zalloc(sizeof(*u));
	struct buf b;
	int rc;

	buf_init(&b, 8192);
	u->path = path;
	data_account_walk(&u->account, path, &(struct data_account_rule){ collect_unknown_file, u });
	if (u->account.n_used) {
		buf_adds(&b, "found ");
		data_account_say_used(&u->account, &b);
	} else {
		buf_adds(&b, "it has no files");
	}
	for (int i = 0; i < u->n_near; i++)
		buf_addf(&b, "%s%s/%s", i ? ", " : "; did you mean ", path, u->near[i]);
	if (u->n_near)
		buf_addc(&b, '?');
	if (u->advice) {
		buf_addf(&b, "; %s %s", u->foreign, u->advice);
	} else {
		buf_adds(&b, "; expected ");
		say_formats(&b);
	}
	rc = err_set(err, ERR_USAGE, "%.200s: no data set recognised: %s", path, b.data ? b.data : "");
	buf_done(&b);
	free(u);
	return rc;
}

/* ---- detection ---- */

/* Returns the format that recognises the path, of one enum sample_kind (-1: any); NULL: none. Shards, HDF5 files and
 * texts need not be folders. A table of conversations is no shard: a folder in a store, which would be listed once
 * more, has none. */
static const struct dataset_ops *find_format(const char *path, int kind)
{
	struct stat st;
	const bool folder = !stat(path, &st) && S_ISDIR(st.st_mode);
	const size_t n = strlen(path);
	const bool tables = folder || (n > 8 && !strcmp(path + n - 8, ".parquet"));

	for (int i = 0; i < FORMATS_COUNT; i++) {
		const struct dataset_ops *f = formats_table[i];

		if ((folder || i == FORMATS_shards || i == FORMATS_hdf5 || i == FORMATS_chat || i == FORMATS_text) &&
		    f->probe && (kind < 0 || (int)f->kind == kind) && f->probe(path))
			return i == FORMATS_shards && tables && dataset_chat.probe(path) ? &dataset_chat : f;
	}
	return NULL;
}

/* With --strict nothing may be left out. */
static int check_strict(const struct dataset *d, struct err *err)
{
	struct buf b;
	int rc = 0;

	buf_init(&b, 4096);
	data_account_say_left(&d->account, 3, &b);
	if (b.len)
		rc = err_set(err, ERR_USAGE, "%.200s: %s: --strict: remove them, or omit the flag", d->path, b.data);
	buf_done(&b);
	return rc;
}

/* Opens o->path with the format, and closes the set again if --strict refuses it. */
static int open_with_format(struct dataset **ret, const struct dataset_ops *f, const struct dataset_opts *o,
			    struct err *err)
{
	struct dataset *d;
	int rc;

	if (o->val_path && f != formats_table[FORMATS_shards] && f != formats_table[FORMATS_chat])
		return err_set(err, ERR_USAGE,
			       "--val-path: is for shards and conversations only: %.200s has its own validation "
			       "samples; use --val-split",
			       o->path);
	rc = f->open(&d, o, err);
	if (!rc && o->classes)
		d->classes_stated = true;
	if (!rc && o->strict && (rc = check_strict(d, err)))
		dataset_close(d);
	if (!rc)
		*ret = d;
	return rc;
}

int formats_open(struct dataset **ret, const struct dataset_opts *o, struct err *err)
{
	const struct dataset_ops *f = NULL;
	struct stat st;

	if (o->mix)
		return token_mix_open(ret, o, formats_open, err);
	if (!o->any_kind)
		f = find_format(o->path, o->seq_len ? SAMPLE_TOKENS : SAMPLE_IMAGE);
	if (!f)
		f = find_format(o->path, -1);
	if (f)
		return open_with_format(ret, f, o, err);
	if (stat(o->path, &st))
		return err_set(err, ERR_USAGE, "data path %.200s: %s", o->path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ERR_USAGE, "data path %.200s: %s", o->path,
			       foreign_advice(o->path) ? foreign_advice(o->path) : "is neither a folder nor a shard");
	return fail_not_recognised(o->path, err);
}
