/* registry.c: shared by all kinds of changes of the registry. Knows no kind. */
#include "web/store/registry/registry.h"

#include <inttypes.h>

#include "web/store/base/no_memory.h"
#include "web/store/registry/registry_inside.h"

int registry_copy(struct change *c, const struct ingest_op *op, struct err *err)
{
	const struct registry_op *from = op->more;
	struct arena *a = c->in.arena;
	struct registry_op *to = arena_alloc(a, sizeof *to);
	bool failed = !to;

	if (to) {
		*to = *from;
		to->name = change_dup(a, from->name, &failed);
		to->text = change_dup(a, from->text, &failed);
		to->source = change_dup(a, from->source, &failed);
		to->location = change_dup(a, from->location, &failed);
		to->run = change_dup(a, from->run, &failed);
		to->run_link = change_dup(a, from->run_link, &failed);
		to->tags = change_dup_pairs(a, from->tags, from->tag_count, &failed);
	}
	c->op = (struct ingest_op){ .kind = op->kind, .more = to };
	return failed ? no_memory(err) : 0;
}

struct ingest_op registry_op(const struct registry_op *op)
{
	return (struct ingest_op){ .kind = op->kind, .more = op };
}

int registry_need(struct state *st, struct change *c, int64_t *ret, struct err *err)
{
	const struct registry_op *op = c->op.more;
	int rc = db_int(state_db(st), ret, DB_registered_id, err, "t", op->name);

	return rc ? rc : change_refuse(c, ERR_NOENT, "Registered Model with name=%.400s not found", op->name);
}

int registry_need_version(struct state *st, struct change *c, int64_t *ret, struct err *err)
{
	const struct registry_op *op = c->op.more;
	int rc = db_int(state_db(st), ret, DB_version_model, err, "ti", op->name, op->version);

	return rc ? rc : change_refuse(c, ERR_NOENT, "Model Version (name=%.400s, version=%" PRId64 ") not found",
				       op->name, op->version);
}
