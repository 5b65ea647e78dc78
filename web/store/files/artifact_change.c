/* artifact_change.c: rows with digests of artifacts and the objects with their bytes, as kinds of changes. Accesses
 * no file. */
#include <stdio.h>
#include <string.h>

#include "web/store/base/no_memory.h"
#include "web/store/files/artifacts.h"
#include "web/store/files/logged_image.h"
#include "web/store/write/change.h"

/* NULL stays NULL. */
static const void *dup_bytes(struct arena *a, const void *bytes, size_t n, bool *failed)
{
	void *copy = bytes ? arena_alloc(a, n + 1) : NULL;

	*failed |= bytes && !copy;
	return copy ? memcpy(copy, bytes, n) : NULL;
}

static int copy_artifact(struct change *c, const struct ingest_op *op, struct err *err)
{
	const struct artifact_digest *from = op->more;
	struct artifact_digest *d = arena_alloc(c->in.arena, sizeof *d);
	bool failed = !d;
	char run[33];

	if (d) {
		*d = *from;
		d->path = change_dup(c->in.arena, from->path, &failed);
		d->sha256 = change_dup(c->in.arena, from->sha256, &failed);
		d->object = change_dup(c->in.arena, from->object, &failed);
		d->content = dup_bytes(c->in.arena, from->content, (size_t)from->bytes, &failed);
		c->text_bytes = d->content ? (size_t)from->bytes : 0;
	}
	c->op = (struct ingest_op){ .kind = op->kind, .more = d };
	if (logged_image_run(from->path, run)) /* locked with the other runs of its group */
		c->op.run = change_dup(c->in.arena, run, &failed);
	return failed ? no_memory(err) : 0;
}

/* 1: a part of the path is a file, or the path is a folder. */
static int path_is_taken(struct db *d, const char *path, struct err *err)
{
	char part[4200];
	int64_t one;
	int rc = db_int(d, &one, DB_artifact_in_way, err, "t", path);

	snprintf(part, sizeof part, "%s", path);
	for (char *slash = strrchr(part, '/'); slash && !rc; slash = strrchr(part, '/')) {
		*slash = '\0';
		rc = db_int(d, &one, DB_artifact_is_file, err, "t", part);
	}
	return rc;
}

static int put_artifact(struct state *st, struct change *c, struct err *err)
{
	const struct artifact_digest *d = c->op.more;
	struct db *db = state_db(st);
	int64_t one;
	int rc = d->object ? path_is_taken(db, d->path, err) : 0;

	if (rc > 0)
		return change_refuse(c, ERR_EXISTS, "%.200s is a folder already, or a part of the path is a file",
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

static int delete_artifact(struct state *st, struct change *c, struct err *err)
{
	int rc = logged_image_remove(st, c->op.name, err);

	return rc ? rc : db_run(state_db(st), DB_artifact_delete, err, "t", c->op.name);
}

const struct change_ops artifact_change_put = { .name = "artifact_put", .copy = copy_artifact, .apply = put_artifact };
const struct change_ops artifact_change_delete = { .name = "artifact_delete", .apply = delete_artifact };
