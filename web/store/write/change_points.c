/* change_points.c: points of one run without a journal; a repeated request is recognised by its key and changes
 * nothing. */
#include "tracker/base/clock.h"
#include "web/store/write/apply.h"
#include "web/store/write/change.h"

static int copy_points_op(struct change *c, const struct ingest_op *op, struct err *err)
{
	int rc = change_copy(c, op, err);

	return rc ? rc : intake_points(&c->in, op, err);
}

/* 1: the request was stored before, and res has the first answer. 0: it is new; its key is stored. */
static int find_repeated_request(struct state *st, const struct state_run *r, struct change *c, struct err *err)
{
	int64_t accepted;
	int rc = db_int(state_db(st), &accepted, DB_idempotency_get, err, "iti", r->id, c->op.idempotency,
			clock_wall_ms() - APPLY_IDEMPOTENCY_MS);

	if (rc > 0) {
		c->res.accepted = (uint64_t)accepted;
		c->res.existed = true;
	}
	return rc ? rc : db_run(state_db(st), DB_idempotency_put, err, "itii", r->id, c->op.idempotency,
				clock_wall_ms(), (int64_t)c->in.point_count);
}

static int apply_points_op(struct state *st, struct change *c, struct err *err)
{
	struct state_run *r;
	int rc = change_need_run(st, c, &r, err);

	if (rc <= 0)
		return rc;
	rc = c->op.idempotency ? find_repeated_request(st, r, c, err) : 0;
	if (rc)
		return rc < 0 ? rc : 0;
	c->res.accepted = c->in.point_count;
	return apply_points(st, r, &(struct apply_points){ .rank = 0, .segment = r->segment }, &c->in, err);
}

const struct change_ops change_points = {
	.name = "points", .check = change_check_run, .copy = copy_points_op, .apply = apply_points_op
};
