/* hier_groups.c: splits a communicator over several machines. All ranks exchange the color of their group and the
 * address of its link through the communicator that is split. */
#include <stdlib.h>
#include <string.h>

#include "trainer/comm/hier_base.h"

struct group_ticket { /* of each rank that takes part in the split */
	int32_t color, bytes; /* bytes of the address of its group's link; -1: it could not be opened */
};

struct group_split { /* of one rank */
	struct hier_comm *all;	     /* is split */
	struct hier_comm *x;	     /* the group's; NULL: it is on one machine, or this rank is in no group */
	struct comm *local;	     /* the group's ranks of this machine */
	int rank, world, nodes;	     /* in the group */
	struct group_ticket *ticket; /* by rank of all */
	struct hier_said *said;     /* by rank of the group */
	size_t address_bytes;	     /* of the longest address */
	unsigned char *addresses;    /* by rank of all; said points into it */
};

/* Gathers the tickets of all ranks and finds the length of the longest address. */
static int gather_tickets(struct group_split *s, const struct group_ticket *own, struct err *err)
{
	const int world = s->all->comm.world;
	int rc;

	s->ticket[s->all->comm.rank] = *own;
	rc = hier_all_gather(&s->all->comm, s->ticket, sizeof(*own), err);
	s->address_bytes = 0;
	for (int r = 0; r < world; r++)
		if (s->ticket[r].bytes > 0 && (size_t)s->ticket[r].bytes > s->address_bytes)
			s->address_bytes = (size_t)s->ticket[r].bytes;
	for (int r = 0; !rc && r < world; r++)
		if (s->ticket[r].bytes < 0)
			rc = err_set(err, ERR_PEER, "rank %d could not open a communicator for its group", r);
	return rc;
}

/* Gathers the link addresses of all groups and lists those of this rank's group. */
static int exchange_group_addresses(struct group_split *s, struct err *err)
{
	const struct hier_comm *all = s->all;
	const int color = s->ticket[all->comm.rank].color;
	size_t n = 0;
	const void *own = s->x ? s->x->link->module->address(s->x->link, &n) : NULL;
	int rc, members = 0;

	s->addresses = calloc((size_t)all->comm.world, s->address_bytes + 1);
	if (!s->addresses)
		return err_set(err, ERR_NOMEM, "out of memory: addresses");
	if (n)
		memcpy(s->addresses + (size_t)all->comm.rank * s->address_bytes, own, n);
	rc = hier_all_gather(&s->all->comm, s->addresses, (int64_t)s->address_bytes, err);
	for (int r = 0; r < all->comm.world; r++)
		if (s->ticket[r].color == color && color >= 0)
			s->said[members++] = (struct hier_said){ all->number[r], all->place[r].node,
								  s->addresses + (size_t)r * s->address_bytes,
								  (size_t)s->ticket[r].bytes };
	return rc;
}

/* Counts ranks and machines of this rank's group, and finds its rank there. */
static void count_group_members(struct group_split *s)
{
	const struct hier_comm *all = s->all;
	int color = s->ticket[all->comm.rank].color, last = -1;

	for (int r = 0; r < all->comm.world; r++) {
		if (color < 0 || s->ticket[r].color != color)
			continue;
		if (r == all->comm.rank)
			s->rank = s->world;
		s->world++;
		s->nodes += all->place[r].node != last;
		last = all->place[r].node;
	}
}

/* Opens the group's link where the group is on several machines; stores the length of its address in the ticket. */
static void open_group_link(struct group_split *s, struct group_ticket *own, struct err *err)
{
	const struct hier_comm *all = s->all;
	struct link_opts lo = { .rank = s->rank, .world = s->world, .sockets = all->sockets,
				.interface = all->interface };
	size_t n = 0;

	own->bytes = 0;
	if (s->nodes <= 1)
		return;
	if (hier_begin_life(&s->x, s->local, all->link->module, &lo, err)) {
		own->bytes = -1;
		return;
	}
	s->x->comm.ops = all->comm.ops;
	s->x->messages.timeout_s = all->messages.timeout_s;
	s->x->link->module->address(s->x->link, &n);
	own->bytes = (int32_t)n;
}

static int run_group_split(struct group_split *s, int color, struct err *err)
{
	struct group_ticket own = { .color = color };
	int rc = s->all->local->ops->split(s->all->local, color, &s->local, err);

	if (!rc)
		rc = gather_tickets(s, &own, err);
	if (!rc) {
		count_group_members(s);
		open_group_link(s, &own, err);
		rc = gather_tickets(s, &own, err);
	}
	if (!rc)
		rc = exchange_group_addresses(s, err);
	return rc || !s->x ? rc : hier_set_up(s->x, s->said, err);
}

int hier_split(struct comm *c, int color, struct comm **ret, struct err *err)
{
	struct group_split s = { .all = hier_of(c) };
	int rc;

	s.ticket = calloc((size_t)c->world, sizeof(*s.ticket));
	s.said = calloc((size_t)c->world, sizeof(*s.said));
	rc = s.ticket && s.said ? run_group_split(&s, color, err)
				: err_set(err, ERR_NOMEM, "out of memory: communicator of a group");
	free(s.ticket);
	free(s.said);
	free(s.addresses);
	if (rc)
		return hier_end(s.all, hier_give_up(s.x, rc));
	*ret = s.x ? &s.x->comm : s.local;
	return 0;
}
