/* hier_groups.c: communicators of groups, by the communicator that they are split from: who is in which group, and
 * how its link is reached, is told to all. */
#include <stdlib.h>
#include <string.h>

#include "trainer/comm/hier_base.h"

struct ticket { /* of each rank of the whole */
	int32_t color, bytes;
};

/* Colors of all, and the length of the longest address. */
static int call_roll(struct hier *all, struct ticket *t, const struct ticket *own, size_t *ret_most, struct err *err)
{
	int rc;

	t[all->comm.rank] = *own;
	rc = hier_all_gather(&all->comm, t, sizeof(*t), err);
	*ret_most = 0;
	for (int r = 0; r < all->comm.world; r++)
		*ret_most = t[r].bytes > 0 && (size_t)t[r].bytes > *ret_most ? (size_t)t[r].bytes : *ret_most;
	for (int r = 0; !rc && r < all->comm.world; r++)
		if (t[r].bytes < 0)
			rc = err_set(err, ERR_PEER, "rank %d could not open a communicator for its group", r);
	return rc;
}

/* The group's link addresses, told to all; said: of the members, in their order. *ret_bytes is what they point into. */
static int swap_addresses(struct hier *all, const struct hier *x, const struct ticket *t, size_t most,
			  struct hier_said *said, unsigned char **ret_bytes, struct err *err)
{
	unsigned char *bytes = calloc((size_t)all->comm.world, most ? most : 1);
	size_t n = 0;
	const void *own = x ? x->link->module->address(x->link, &n) : NULL;
	int rc, members = 0, color = t[all->comm.rank].color;

	if (!bytes)
		return err_set(err, ERR_NOMEM, "out of memory: addresses");
	if (n)
		memcpy(bytes + (size_t)all->comm.rank * most, own, n);
	rc = hier_all_gather(&all->comm, bytes, (int64_t)most, err);
	for (int r = 0; r < all->comm.world; r++)
		if (t[r].color == color && color >= 0)
			said[members++] = (struct hier_said){ all->number[r], all->place[r].node,
							       bytes + (size_t)r * most, (size_t)t[r].bytes };
	*ret_bytes = bytes;
	return rc;
}

struct members {
	struct comm *local; /* its ranks of this machine */
	int rank, world, nodes;
};

/* Who is in the group of that color; colors: of all ranks. */
static void count_members(const struct hier *all, const struct ticket *t, struct members *g)
{
	int color = t[all->comm.rank].color, last = -1;

	for (int r = 0; r < all->comm.world; r++) {
		if (color < 0 || t[r].color != color)
			continue;
		if (r == all->comm.rank)
			g->rank = g->world;
		g->world++;
		g->nodes += all->place[r].node != last;
		last = all->place[r].node;
	}
}

/* Opens the group's link where it is on several machines; negative bytes in own tell that it failed. */
static void open_group(struct hier *all, struct members *g, struct hier **ret, struct ticket *own, struct err *err)
{
	struct link_opts lo = { .rank = g->rank, .world = g->world, .sockets = all->sockets,
				.interface = all->interface };
	size_t n = 0;

	own->bytes = 0;
	if (g->nodes <= 1)
		return;
	if (hier_begin_life(ret, g->local, all->link->module, &lo, err)) {
		own->bytes = -1;
		return;
	}
	(*ret)->comm.ops = all->comm.ops;
	(*ret)->messages.timeout_s = all->messages.timeout_s;
	(*ret)->link->module->address((*ret)->link, &n);
	own->bytes = (int32_t)n;
}

int hier_split(struct comm *c, int color, struct comm **ret, struct err *err)
{
	struct hier *all = hier_of(c), *x = NULL;
	struct ticket *t = calloc((size_t)c->world, sizeof(*t)), own = { .color = color };
	struct hier_said *said = calloc((size_t)c->world, sizeof(*said));
	struct members g = { .local = NULL };
	unsigned char *bytes = NULL;
	size_t most;
	int rc = t && said ? all->local->ops->split(all->local, color, &g.local, err)
		: err_set(err, ERR_NOMEM, "out of memory: communicator of a group");

	if (!rc)
		rc = call_roll(all, t, &own, &most, err);
	if (!rc) {
		count_members(all, t, &g);
		open_group(all, &g, &x, &own, err);
		rc = call_roll(all, t, &own, &most, err);
	}
	if (!rc)
		rc = swap_addresses(all, x, t, most, said, &bytes, err);
	if (!rc && x)
		rc = hier_set_up(x, said, err);
	free(t);
	free(said);
	free(bytes);
	if (rc)
		return hier_end(all, hier_give_up(x, rc));
	*ret = x ? &x->comm : g.local;
	return 0;
}
