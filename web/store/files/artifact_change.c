/* SPDX-License-Identifier: Apache-2.0 */
/* artifact_change.c: rows with digests of artifacts, the objects with their bytes, and pictures that MLflow's client
 * uploads, as kinds of changes. Accesses no file. */
#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/clock.h"
#include "tracker/event/event_media.h"
#include "web/store/files/files.h"
#include "web/store/write/apply.h"
#include "web/store/write/change.h"

/* --- objects -------------------------------------------------------------------------------------------------- */

static int begin_object(struct state *st, struct change *c, struct err *err)
{
	return db_run(state_db(st), DB_object_begin, err, "ti", c->op.name, clock_wall_ms());
}

static int doom_objects(struct state *st, struct change *c, struct err *err)
{
	return db_run(state_db(st), DB_objects_doom, err, "i", c->op.before_ms);
}

static int place_object(struct state *st, struct change *c, struct err *err)
{
	return db_run(state_db(st), DB_artifacts_place_put, err, "t", c->op.name);
}

static int record_folder(struct state *st, struct change *c, struct err *err)
{
	return db_run(state_db(st), DB_files_place_put, err, "t", c->op.name);
}

const struct change_ops artifact_change_folder = { .name = "artifacts_folder", .apply = record_folder };
const struct change_ops object_change_begin = { .name = "object_begin", .never_waits = true, .apply = begin_object };
const struct change_ops object_change_doom = { .name = "object_doom", .apply = doom_objects };
const struct change_ops object_change_place = { .name = "artifacts_place", .apply = place_object };

/* --- logged pictures ------------------------------------------------------------------------------------------ */

/* Parses key, step and time from file names; stores images like media of journals. */

#define PNG_HEAD_BYTES 24
#define RUN_CHARS 32
#define PATH_ROOM 4200

struct picture_file {
	char run[RUN_CHARS + 1], key[LIMIT_key_bytes + 1];
	int64_t step, ms;
};

/* Cuts a name and an integer off the end of the text: KEY+NAME+N. */
static bool cut_named_number(char *text, const char *name, int64_t *ret)
{
	char *at = strrchr(text, '+'), *end;
	size_t n = strlen(name);

	if (!at || at <= text + n || !at[1] || memcmp(at - n, name, n) != 0 || *(at - n - 1) != '+')
		return false;
	*ret = strtoll(at + 1, &end, 10);
	*(at - n - 1) = '\0';
	return !*end;
}

/* False: not the path of an image. */
static bool parse_picture_path(const char *path, struct picture_file *ret)
{
	static const char below[] = "/artifacts/images/";
	const char *run = strchr(path, '/'), *name = strstr(path, below);
	char text[LIMIT_key_bytes + 200], *ending;

	if (!run || !name || name != run + 1 + RUN_CHARS || strchr(name + sizeof(below) - 1, '/'))
		return false;
	memcpy(ret->run, run + 1, RUN_CHARS);
	ret->run[RUN_CHARS] = '\0';
	if ((size_t)snprintf(text, sizeof(text), "%s", name + sizeof(below) - 1) >= sizeof(text))
		return false;
	ending = strrchr(text, '+');
	if (!ending || strlen(ending) < 4 || strcmp(ending + strlen(ending) - 4, ".png") != 0)
		return false;
	*ending = '\0';
	if (!cut_named_number(text, "timestamp", &ret->ms) || !cut_named_number(text, "step", &ret->step) || !*text ||
	    strlen(text) > LIMIT_key_bytes)
		return false;
	for (char *p = text; *p; p++)
		if (*p == '~') /* MLflow's encoding of a slash */
			*p = '/';
	snprintf(ret->key, sizeof(ret->key), "%.*s", LIMIT_key_bytes, text);
	return true;
}

size_t artifact_picture_room(const char *path)
{
	struct picture_file p;

	return parse_picture_path(path, &p) ? LIMIT_media_bytes : 0;
}

/* The run of the image; false: not the path of an image. */
static bool logged_image_run(const char *path, char ret[33])
{
	struct picture_file p;

	if (!parse_picture_path(path, &p))
		return false;
	memcpy(ret, p.run, sizeof(p.run));
	return true;
}

static unsigned read_be32(const unsigned char *at)
{
	return (unsigned)at[0] << 24 | (unsigned)at[1] << 16 | (unsigned)at[2] << 8 | at[3];
}

/* Deletes the image of this path and finds its run; *ret NULL: the path is not that of an image of a run that is there.
 */
static int remove_picture(struct state *st, const char *path, struct state_run **ret, struct picture_file *p,
			  struct err *err)
{
	struct err why = ERR_INIT;
	int64_t key;
	int rc;

	*ret = NULL;
	if (!parse_picture_path(path, p))
		return 0;
	rc = state_run(st, p->run, ret, &why);
	if (rc == ERR_NOENT || rc == ERR_GONE)
		return *ret = NULL, 0;
	if (rc)
		return *err = why, rc;
	if (strtoll(path, NULL, 10) != (*ret)->experiment_id) /* not in the run's folder */
		return *ret = NULL, 0;
	rc = state_key(st, p->key, &key, err);
	if (!rc)
		rc = db_run(state_db(st), DB_media_delete, err, "iiiid", (*ret)->id, key, (int64_t)MEDIA_IMAGE, p->step,
			    (double)p->ms / 1000);
	if (!rc)
		state_mark(st, *ret, true);
	return rc;
}

/* In the transaction that records the file: replaces the image of this path. Does nothing if path or content is not
 * an image, or the run is gone. */
static int logged_image_put(struct state *st, const struct artifact_digest *d, struct err *err)
{
	static const unsigned char png[] = "\x89PNG\r\n\x1a\n";
	const unsigned char *bytes = d->content;
	struct state_run *r;
	struct picture_file p;
	struct buf content;
	int rc = remove_picture(st, d->path, &r, &p, err);

	if (rc || !r || !bytes || d->bytes < PNG_HEAD_BYTES || memcmp(bytes, png, sizeof(png) - 1) != 0)
		return rc;
	buf_init(&content, LIMIT_media_bytes);
	media_add_image(&content, (struct event_span){ bytes, bytes + d->bytes }, read_be32(bytes + 16),
			read_be32(bytes + 20));
	if (!buf_failed(&content)) /* if too large it stays a file only */
		rc = told_media(st, r, &(struct told_media){ .key = p.key, .kind = MEDIA_IMAGE, .rank = STATE_RUN_LEVEL,
							     .segment = r->segment, .step = p.step,
							     .wall_time = (double)p.ms / 1000, .bytes = content.data,
							     .len = content.len }, err);
	buf_done(&content);
	return rc;
}

/* 1: the next file after `at` and before the end that may be an image; 0: none. */
static int next_picture_file(struct db *db, char *at, size_t room, const char *end, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(db, &q, DB_artifact_picture_next, err, "tt", at, end);

	if (!rc && (rc = db_next(db, q, err)) > 0) {
		snprintf(at, room, "%s", db_str(q, COL_artifact_picture_next_path));
		db_stop(q);
	}
	return rc;
}

/* Removes the images of the file at path, or below it. Call it before the rows of the files are deleted. */
static int logged_image_remove(struct state *st, const char *path, struct err *err)
{
	char at[PATH_ROOM], end[PATH_ROOM];
	struct state_run *r;
	struct picture_file p;
	int rc = remove_picture(st, path, &r, &p, err);

	snprintf(at, sizeof(at), "%s/", path);
	snprintf(end, sizeof(end), "%s0", path);
	while (!rc && (rc = next_picture_file(state_db(st), at, sizeof(at), end, err)) > 0)
		rc = remove_picture(st, at, &r, &p, err);
	return rc;
}

/* NULL stays NULL. */
static const void *dup_bytes(struct arena *a, const void *bytes, size_t n)
{
	void *copy = bytes ? arena_alloc(a, n + 1) : NULL;

	return copy ? memcpy(copy, bytes, n) : NULL;
}

static void copy_artifact(struct change *c, const struct ingest_op *op)
{
	const struct artifact_digest *from = op->more;
	struct artifact_digest *d = arena_alloc(c->in.arena, sizeof(*d));
	char run[33];

	*d = *from;
	d->path = change_dup(c->in.arena, from->path);
	d->sha256 = change_dup(c->in.arena, from->sha256);
	d->object = change_dup(c->in.arena, from->object);
	d->content = dup_bytes(c->in.arena, from->content, (size_t)from->bytes);
	c->text_bytes = d->content ? (size_t)from->bytes : 0;
	c->op = (struct ingest_op){ .kind = op->kind, .more = d };
	if (logged_image_run(from->path, run)) /* locked with the other runs of its group */
		c->op.run = change_dup(c->in.arena, run);
}

/* 1: a part of the path is a file, or the path is a folder. */
static int path_is_taken(struct db *d, const char *path, struct err *err)
{
	char part[4200];
	int64_t one;
	int rc = db_int(d, &one, DB_artifact_in_way, err, "t", path);

	snprintf(part, sizeof(part), "%s", path);
	for (char *slash = strrchr(part, '/'); slash && !rc; slash = strrchr(part, '/')) {
		*slash = '\0';
		rc = db_int(d, &one, DB_artifact_is_file, err, "t", part);
	}
	return rc;
}

/* 1: the caller may write this path, 0 refused. */
static int may_write_path(struct state *st, struct change *c, const char *path, struct err *err)
{
	int64_t experiment = artifact_experiment(path);
	int rc = !c->grants ? 1 : experiment < 0 ? ERR_NOENT : change_may_write(st, c, experiment, err);

	return rc == ERR_NOENT ? change_refuse(c, ERR_DENIED, ARTIFACT_DENIED, path) : rc;
}

/* Records a file; an object becomes the file of its path. */
static int put_artifact(struct state *st, struct change *c, struct err *err)
{
	const struct artifact_digest *d = c->op.more;
	struct db *db = state_db(st);
	int64_t one;
	int rc = may_write_path(st, c, d->path, err);

	if (rc <= 0)
		return rc;
	rc = artifact_owner_gone(db, d->path, err);
	if (rc)
		return rc < 0 ? rc : change_refuse(c, ERR_GONE, ARTIFACT_GONE, d->path);
	rc = d->object ? path_is_taken(db, d->path, err) : 0;
	if (rc > 0)
		return change_refuse(c, ERR_EXISTS, "%.200s is already a folder, or a part of the path is a file",
				     d->path);
	if (!rc && d->object) {
		rc = db_int(db, &one, DB_object_named, err, "t", d->object);
		if (!rc)
			return change_refuse(c, ERR_BUSY, "%.200s took so long that gc removed it: "
					     "send it again", d->path);
		rc = rc < 0 ? rc : 0;
	}
	if (!rc)
		rc = db_run(db, DB_artifact_put, err, "tiitt", d->path, d->bytes, d->time_ns, d->sha256, d->object);
	return rc ? rc : logged_image_put(st, d, err);
}

static int put_leaving(struct db *d, const struct artifact_item *file, struct err *err)
{
	return db_run(d, DB_leaving_put, err, "tii", file->path, file->bytes, file->time_ns);
}

struct artifact_files artifact_files_copy(struct arena *a, const struct artifact_files *from)
{
	struct artifact_files to = { .count = from ? from->count : 0 };

	to.items = arena_array(a, to.count, sizeof(*to.items));
	for (size_t i = 0; i < to.count; i++) {
		to.items[i] = from->items[i];
		to.items[i].path = arena_strdup(a, from->items[i].path);
	}
	return to;
}

static void copy_file_list(struct change *c, const struct ingest_op *op)
{
	struct artifact_files *to = arena_alloc(c->in.arena, sizeof(*to));

	change_copy(c, op);
	*to = artifact_files_copy(c->in.arena, op->more);
	c->op.more = to;
}

static int delete_artifact(struct state *st, struct change *c, struct err *err)
{
	const char *slash = strchr(c->op.name, '/'); /* EXPERIMENT/RUN/… */
	const struct artifact_files *files = c->op.more;
	int rc = may_write_path(st, c, c->op.name, err);

	if (rc <= 0)
		return rc;
	c->about.name = c->op.name;
	c->about.id = slash ? arena_printf(c->in.arena, "%.32s", slash + 1) : NULL;
	rc = change_about_experiment(st, c, strtoll(c->op.name, NULL, 10), err);
	if (!rc)
		rc = logged_image_remove(st, c->op.name, err);
	if (!rc)
		rc = db_run(state_db(st), DB_artifact_delete, err, "t", c->op.name);
	for (size_t i = 0; i < files->count && !rc; i++)
		rc = put_leaving(state_db(st), &files->items[i], err);
	return rc;
}

int artifact_drop(struct state *st, bool on_disk, const struct artifact_item *file, struct err *err)
{
	struct db *d = state_db(st);
	int64_t time_ns;
	int rc = db_int(d, &time_ns, DB_artifact_time, err, "t", file->path);

	if (rc < 0 || (rc > 0 && time_ns != file->time_ns) || (!rc && !on_disk))
		return rc < 0 ? rc : 0;
	rc = logged_image_remove(st, file->path, err);
	if (!rc)
		rc = db_run(d, DB_artifact_delete, err, "t", file->path);
	if (!rc && on_disk)
		rc = put_leaving(d, file, err);
	return rc ? rc : 1;
}

static int forget_objects(struct state *st, struct change *c, struct err *err)
{
	const struct artifact_files *objects = c->op.more;
	int rc = 0;

	for (size_t i = 0; i < objects->count && !rc; i++)
		rc = db_run(state_db(st), DB_object_forget, err, "t", objects->items[i].path);
	return rc;
}

static int forget_left(struct state *st, struct change *c, struct err *err)
{
	const struct artifact_files *files = c->op.more;
	int rc = 0;

	for (size_t i = 0; i < files->count && !rc; i++)
		rc = db_run(state_db(st), DB_leaving_drop, err, "tii", files->items[i].path, files->items[i].bytes,
			    files->items[i].time_ns);
	return rc;
}

const struct change_ops artifact_change_put = {
	.name = "artifact_put", .judges = true, .copy = copy_artifact, .apply = put_artifact
};
const struct change_ops artifact_change_delete = { .name = "artifact_delete",
						   .judges = true,
						   .action = "delete",
						   .object = "artifact",
						   .copy = copy_file_list,
						   .apply = delete_artifact };
const struct change_ops artifact_change_left = { .name = "artifact_left",
						 .copy = copy_file_list,
						 .apply = forget_left };
const struct change_ops object_change_forget = { .name = "object_forget",
						 .copy = copy_file_list,
						 .apply = forget_objects };
