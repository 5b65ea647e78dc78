/* artifact_change.c: the digests that are kept of artifacts, as kinds of changes. Touches no file. */
#include "web/store/files/artifacts.h"
#include "web/store/write/change.h"

static int copy_put(struct change *c, const struct ingest_op *op, struct err *err)
{
	const struct artifact_digest *from = op->more;
	struct artifact_digest *d = arena_alloc(c->in.arena, sizeof *d);
	bool failed = !d;

	if (d) {
		*d = *from;
		d->path = change_dup(c->in.arena, from->path, &failed);
		d->sha256 = change_dup(c->in.arena, from->sha256, &failed);
	}
	c->op = (struct ingest_op){ .kind = op->kind, .more = d };
	return failed ? err_set(err, ERR_NOMEM, "out of memory") : 0;
}

static int put(struct state *st, struct change *c, struct err *err)
{
	const struct artifact_digest *d = c->op.more;

	return db_run(state_db(st), DB_artifact_put, err, "tiit", d->path, d->bytes, d->time_ns, d->sha256);
}

static int delete(struct state *st, struct change *c, struct err *err)
{
	return db_run(state_db(st), DB_artifact_delete, err, "t", c->op.name);
}

const struct change_ops artifact_change_put = { .name = "artifact_put", .copy = copy_put, .apply = put };
const struct change_ops artifact_change_delete = { .name = "artifact_delete", .apply = delete };
