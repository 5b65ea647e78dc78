/* snapshot.c: copies the private slab in one piece where possible; else the parts that the rank owns, one after
 * another. */
#include "trainer/state/snapshot.h"

static unsigned char *snapshot_base(const struct prepared *p)
{
	return p->slab[SPACE_PINNED] + p->snapshot_offset;
}

int snapshot_take(const struct tensors *s, struct err *err)
{
	const struct prepared *p = s->prepared;
	const struct tensor *t;
	int rc = 0, at = 0;

	if (prepared_in_one_piece(p))
		return prepared_copy(p, snapshot_base(p), p->slab[SPACE_PRIVATE], p->snapshot_bytes, err);
	while (!rc && (t = prepared_next(p, &at))) {
		struct strategy_part held = prepared_held(p, t, s->comm->rank);
		size_t bytes = (size_t)(held.end - held.begin) * dtype_bytes(t->dtype);

		if (bytes)
			rc = prepared_get(p, prepared_own(p, t->name),
					  snapshot_base(p) + prepared_copy_at(p, t->name), bytes,
					  err);
	}
	return rc;
}

struct tensors snapshot_tensors(const struct tensors *s, struct comm *c)
{
	return (struct tensors){ .prepared = s->prepared, .comm = c, .copy = snapshot_base(s->prepared) };
}

const void *snapshot_peek(const struct tensors *s, const struct tensor *t)
{
	return snapshot_base(s->prepared) + prepared_copy_at(s->prepared, t->name);
}
