/* snapshot.c: in one piece where every rank holds everything; else gathered, whole tensors behind one another. */
#include "trainer/state/snapshot.h"

#include <string.h>

#include "trainer/graph/slab.h"

static unsigned char *base(const struct prepared *p)
{
	return p->slab[SPACE_PINNED] + p->snapshot_offset;
}

int snapshot_take(const struct tensors *s, struct err *err)
{
	const struct prepared *p = s->prepared;
	int at = 0;
	const struct tensor *t;
	size_t offset = 0;
	int rc = 0;

	if (!p->opts.strategy->holds)
		return p->opts.backend->copy(p->opts.module, base(p), p->slab[SPACE_PRIVATE], p->snapshot_bytes, err);
	while (!rc && (t = prepared_next(p, &at))) {
		rc = tensors_get(s, t, tensors_all(t), base(p) + offset, err);
		offset += slab_align(tensors_bytes(t), PLAN_ALIGN_BYTES);
	}
	return tensors_helped(s, rc, err);
}

const void *snapshot_peek(const struct tensors *s, const struct tensor *t)
{
	int at = 0;
	const struct tensor *other;
	size_t offset = 0;

	if (!s->prepared->opts.strategy->holds)
		return base(s->prepared) + prepared_own(s->prepared, t->name)->offset;
	while ((other = prepared_next(s->prepared, &at)) && strcmp(other->name, t->name) != 0)
		offset += slab_align(tensors_bytes(other), PLAN_ALIGN_BYTES);
	return base(s->prepared) + offset;
}
