/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint.c: folders of checkpoints: writes them atomically, lists, reads and removes them. */
#include "trainer/weights/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "tracker/base/crc32c.h"
#include "tracker/base/file.h"
#include "tracker/mem/mem.h"

#define PATH_BYTES 4096
#define FILE_BYTES 4200 /* room for a path in a checkpoint */
#define STATE "state.json"
#define STATE_BYTES_MAX (16u << 20)
#define WRITING ".writing-" /* hidden folders of interrupted writers; followed by step and process */
#define REMOVING ".removing-"

struct checkpoint {
	char path[4096];
	struct state_file file;
};

/* ---- paths ---- */

static int join_path(char *ret, size_t n, const char *folder, const char *name, struct err *err)
{
	if ((size_t)snprintf(ret, n, "%s/%s", folder, name) >= n)
		return err_set(err, ERR_USAGE, "%.200s…: the path is too long", folder);
	return 0;
}

static int hidden_path(char ret[PATH_BYTES], const char *folder, const char *kind, int64_t step, struct err *err)
{
	char name[80];

	snprintf(name, sizeof(name), "%s%lld-%ld", kind, (long long)step, (long)getpid());
	return join_path(ret, PATH_BYTES, folder, name, err);
}

int checkpoint_path(char *ret, size_t n, const char *folder, int64_t step, struct err *err)
{
	char name[40];

	snprintf(name, sizeof(name), "step-%lld", (long long)step);
	return join_path(ret, n, folder, name, err);
}

int checkpoint_model_path(char *ret, size_t n, const char *folder, struct err *err)
{
	int rc = join_path(ret, n, folder, CHECKPOINT_ADAPTER, err);

	return rc || !access(ret, F_OK) ? rc : join_path(ret, n, folder, CHECKPOINT_MODEL, err);
}

/* ---- removing ---- */

/* Removes a folder of plain files, or of such folders. */
static int remove_checkpoint_folder(const char *path, struct err *err)
{
	char file[FILE_BYTES];
	DIR *d = opendir(path);
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
		    !join_path(file, sizeof(file), path, e->d_name, NULL) && unlink(file))
			remove_checkpoint_folder(file, NULL);
	if (d)
		closedir(d);
	return rmdir(path) ? err_set_errno(err, errno, "cannot remove %.300s", path) : 0;
}

int checkpoint_remove(const char *folder, int64_t step, struct err *err)
{
	char path[PATH_BYTES], hidden[PATH_BYTES];
	int rc = checkpoint_path(path, sizeof(path), folder, step, err);

	if (!rc)
		rc = hidden_path(hidden, folder, REMOVING, step, err);
	if (!rc && rename(path, hidden)) /* a partly removed folder never has the name of a checkpoint */
		rc = err_set_errno(err, errno, "cannot remove %.300s", path);
	return rc ? rc : remove_checkpoint_folder(hidden, err);
}

void checkpoint_sweep(const char *folder)
{
	char path[4096];
	DIR *d = opendir(folder);
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if ((!strncmp(e->d_name, WRITING, strlen(WRITING)) ||
		     !strncmp(e->d_name, REMOVING, strlen(REMOVING))) &&
		    !join_path(path, sizeof(path), folder, e->d_name, NULL))
			remove_checkpoint_folder(path, NULL);
	if (d)
		closedir(d);
}

/* ---- writing ---- */

static int sync_checkpoint_folder(const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return err_set_errno(err, errno, "cannot open %.300s", path);
	if (fsync(fd) && errno != EINVAL) /* EINVAL: the file system does not support it */
		rc = err_set_errno(err, errno, "cannot sync %.300s", path);
	close(fd);
	return rc;
}

static int write_state_text(const char *path, const char *text, struct err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), rc = 0;

	if (fd < 0)
		return err_set_errno(err, errno, "cannot create %.300s", path);
	if (file_write(fd, text, strlen(text)))
		rc = err_set_errno(err, errno, "cannot write %.300s", path);
	if (!rc && fsync(fd))
		rc = err_set_errno(err, errno, "cannot sync %.300s", path);
	if (close(fd) && !rc)
		rc = err_set_errno(err, errno, "cannot write %.300s", path);
	return rc;
}

static int write_weights_part(const struct checkpoint_write_opts *o, const char *path, enum weights_part part,
			      struct st_sum *ret, struct err *err)
{
	const bool model = part != WEIGHTS_STATE;
	struct weights_save_opts w = { .part = part, .ret_sum = ret };
	char file[FILE_BYTES];
	int rc = join_path(file, sizeof(file), path,
			   part == WEIGHTS_ADAPTER ? CHECKPOINT_ADAPTER
			   : model		   ? CHECKPOINT_MODEL
						   : CHECKPOINT_OPTIMIZER,
			   err);

	w.path = file;
	if (!rc && part == WEIGHTS_ADAPTER)
		rc = file_make_parents(file, 0777, err);
	if (model) {
		w.meta = o->meta;
		w.n_meta = o->n_meta;
	}
	if (!rc)
		rc = weights_save(o->graph, &w, o->access, err);
	return !rc && model && o->gpt ? hf_config_write(o->gpt, file, err) : rc;
}

static int write_checkpoint_files(const struct checkpoint_write_opts *o, const char *path, struct err *err)
{
	struct st_sum sum[STATE_FILES];
	char file[FILE_BYTES], *text;
	int rc = write_weights_part(o, path, o->gpt && o->gpt->lora ? WEIGHTS_ADAPTER : WEIGHTS_MODEL,
				    &sum[STATE_MODEL], err);

	if (!rc)
		rc = write_weights_part(o, path, WEIGHTS_STATE, &sum[STATE_OPTIMIZER], err);
	if (!rc)
		rc = join_path(file, sizeof(file), path, STATE, err);
	if (rc)
		return rc;
	text = state_text(o, sum);
	if (!text)
		return err_set(err, ERR_NOMEM, "%.300s: cannot create it (out of memory, or a value is not UTF-8)",
			       file);
	rc = write_state_text(file, text, err);
	free(text);
	return rc ? rc : sync_checkpoint_folder(path, err);
}

/* Renames the finished folder, and removes an existing one of that name afterwards. */
static int rename_into_place(const char *hidden, const char *path, const char *folder, struct err *err)
{
	if (!rename(hidden, path))
		return sync_checkpoint_folder(folder, err);
	if (errno != ENOTEMPTY && errno != EEXIST)
		return err_set_errno(err, errno, "cannot rename %.300s to its final name", hidden);
	if (renameat2(AT_FDCWD, hidden, AT_FDCWD, path, RENAME_EXCHANGE)) {
		if (remove_checkpoint_folder(path, err))
			return err->code;
		if (rename(hidden, path))
			return err_set_errno(err, errno, "cannot rename %.300s to its final name", hidden);
	} else if (remove_checkpoint_folder(hidden, err)) {
		return err->code;
	}
	return sync_checkpoint_folder(folder, err);
}

int checkpoint_write(const struct checkpoint_write_opts *o, struct err *err)
{
	char path[PATH_BYTES], hidden[PATH_BYTES];
	int rc = checkpoint_path(path, sizeof(path), o->folder, o->state->step, err);

	if (!rc)
		rc = hidden_path(hidden, o->folder, WRITING, o->state->step, err);
	if (!rc && mkdir(o->folder, 0777) && errno != EEXIST)
		rc = err_set_errno(err, errno, "cannot create %.300s", o->folder);
	if (!rc && mkdir(hidden, 0777))
		rc = err_set_errno(err, errno, "cannot create %.300s", hidden);
	if (rc)
		return rc;
	rc = write_checkpoint_files(o, hidden, err);
	if (!rc && o->ready)
		o->ready(o->user);
	if (!rc)
		rc = rename_into_place(hidden, path, o->folder, err);
	if (rc)
		remove_checkpoint_folder(hidden, NULL);
	return rc;
}

/* ---- reading ---- */

static int read_state_file(struct buf *ret, const char *path, struct err *err)
{
	int rc = file_load(ret, path, err);

	return rc && errno == EFBIG ? err_set(err, ERR_USAGE, "%.300s: is not the state of a checkpoint", path) : rc;
}

int checkpoint_open(struct checkpoint **ret, const char *path, struct err *err)
{
	struct checkpoint *c = mem_zalloc(sizeof(*c));
	struct buf text;
	char file[FILE_BYTES];
	int rc = 0;

	buf_init(&text, STATE_BYTES_MAX);
	if ((size_t)snprintf(c->path, sizeof(c->path), "%s", path) >= sizeof(c->path))
		rc = err_set(err, ERR_USAGE, "%.200s…: the path is too long", path);
	if (!rc)
		rc = join_path(file, sizeof(file), path, STATE, err);
	if (!rc)
		rc = read_state_file(&text, file, err);
	if (!rc)
		rc = state_parse(&c->file, file, text.data ? text.data : "", text.len, err);
	buf_done(&text);
	if (rc)
		free(c);
	else
		*ret = c;
	return rc;
}

void checkpoint_close(struct checkpoint *c)
{
	if (c)
		state_done(&c->file);
	free(c);
}

const char *checkpoint_folder(const struct checkpoint *c)
{
	return c->path;
}

const struct checkpoint_state *checkpoint_state(const struct checkpoint *c)
{
	return &c->file.state;
}

void checkpoint_kernels(const struct checkpoint *c, void (*fn)(void *user, const char *key, const char *name),
			void *user)
{
	const char *key;
	json_t *v;

	json_object_foreach(c->file.kernels, key, v)
		if (json_is_string(v))
			fn(user, key, json_string_value(v));
}

const char *checkpoint_config(const struct checkpoint *c, const char *name)
{
	return json_string_value(json_object_get(c->file.config, name));
}

static int verify_file_sum(const char *path, const struct st_sum *want, struct err *err)
{
	struct file_map file = { 0 };
	int rc = file_map_open(&file, path, err);

	if (!rc && file.n != want->bytes)
		rc = err_set(err, ERR_USAGE, "%.300s: is damaged: %zu bytes of %llu", path, file.n,
			     (unsigned long long)want->bytes);
	if (!rc && crc32c(0, file.bytes, file.n) != want->crc32c)
		rc = err_set(err, ERR_USAGE, "%.300s: is damaged: its checksum is wrong", path);
	file_map_close(&file);
	return rc;
}

/* Fills the path of one of the two files and the options to load it. */
static int part_opts(struct weights_load_opts *ret, char file[FILE_BYTES], const struct checkpoint *c, int which,
		     struct err *err)
{
	const bool model = which == STATE_MODEL, adapter = model && c->file.adapter;

	*ret = (struct weights_load_opts){ .path = file,
					   .part = adapter ? WEIGHTS_ADAPTER
						   : model ? WEIGHTS_MODEL
							   : WEIGHTS_STATE };
	return join_path(file, FILE_BYTES, c->path,
			 adapter ? CHECKPOINT_ADAPTER
			 : model ? CHECKPOINT_MODEL
				 : CHECKPOINT_OPTIMIZER,
			 err);
}

/* An evaluation does not need the optimiser's file. */
static int count_needed_files(const struct graph *g)
{
	return g->training ? STATE_FILES : STATE_MODEL + 1;
}

int checkpoint_verify(const struct checkpoint *c, const struct graph *g, struct err *err)
{
	int rc = 0;

	for (int i = 0; !rc && i < count_needed_files(g); i++) {
		struct weights_load_opts o;
		char file[FILE_BYTES];

		rc = part_opts(&o, file, c, i, err);
		if (!rc)
			rc = verify_file_sum(file, &c->file.sum[i], err);
		if (!rc)
			rc = weights_check(g, &o, err);
	}
	return rc;
}

int checkpoint_verify_model(const char *folder, struct err *err)
{
	struct checkpoint *c;
	char file[FILE_BYTES];
	int rc = join_path(file, sizeof(file), folder, STATE, err);

	if (rc || access(file, F_OK))
		return rc;
	rc = checkpoint_open(&c, folder, err);
	if (rc)
		return rc;
	rc = checkpoint_model_path(file, sizeof(file), folder, err);
	if (!rc)
		rc = verify_file_sum(file, &c->file.sum[STATE_MODEL], err);
	checkpoint_close(c);
	return rc;
}

int checkpoint_load(const struct checkpoint *c, const struct graph *g, const struct weights_access *a, struct err *err)
{
	int rc = 0;

	for (int i = 0; !rc && i < count_needed_files(g); i++) {
		struct weights_load_opts o;
		char file[FILE_BYTES];

		rc = part_opts(&o, file, c, i, err);
		if (!rc)
			rc = weights_load(g, &o, a, err);
	}
	return rc;
}

/* ---- listing ---- */

static bool parse_step_name(const char *name, int64_t *ret_step)
{
	char *end;

	if (strncmp(name, "step-", 5) || name[5] < '0' || name[5] > '9')
		return false;
	errno = 0;
	*ret_step = strtoll(name + 5, &end, 10);
	return !*end && !errno;
}

static int newest_first(const void *a, const void *b)
{
	const struct checkpoint_entry *x = a, *y = b;
	bool both = x->segment >= 0 && y->segment >= 0;

	if (!both && (x->segment < 0) != (y->segment < 0))
		return x->segment < 0 ? -1 : 1;
	if (x->segment != y->segment)
		return x->segment > y->segment ? -1 : 1;
	return x->step > y->step ? -1 : x->step < y->step;
}

static struct checkpoint_entry describe_entry(const char *folder, int64_t step)
{
	struct checkpoint_entry e = { .step = step, .segment = -1 };
	struct checkpoint *c;
	char path[4096];

	if (checkpoint_path(path, sizeof(path), folder, step, NULL) || checkpoint_open(&c, path, NULL))
		return e;
	e.segment = c->file.state.segment;
	checkpoint_close(c);
	return e;
}

int checkpoint_list(struct checkpoint_entry **ret, size_t *ret_n, const char *folder, struct err *err)
{
	struct checkpoint_entry *list = NULL;
	size_t n = 0, room = 0;
	DIR *d = opendir(folder);
	const struct dirent *e;
	int64_t step;

	if (!d && errno != ENOENT)
		return err_set_errno(err, errno, "cannot read %.300s", folder);
	while (d && (e = readdir(d)))
		if (parse_step_name(e->d_name, &step))
			mem_push(&list, &n, &room, describe_entry(folder, step));
	if (d)
		closedir(d);
	if (n)
		qsort(list, n, sizeof(*list), newest_first);
	*ret = list;
	*ret_n = n;
	return 0;
}
