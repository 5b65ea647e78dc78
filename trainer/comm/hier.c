/* SPDX-License-Identifier: Apache-2.0 */
/* hier.c: hierarchical communicators: shared memory within each machine, messages between machines. Opens and splits
 * them; gathers, broadcasts, messages and barriers. Sums are in hier_sums.c; hier_base.c has what all share. */
#include "trainer/comm/hier.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"
#include "trainer/comm/hier_base.h"

/* ---- copies ----
 *
 * A rank's slice goes to one rank of each other machine, which copies it to the other ranks there. */

static int begin_send(struct hier_comm *x, int peer, const void *data, size_t bytes, struct err *err)
{
	const struct message_opts o = { .peer = peer, .sends = true, .data = (void *)(uintptr_t)data, .bytes = bytes };

	return requests_begin(&x->messages, &o, err);
}

static int begin_receive(struct hier_comm *x, int peer, void *data, size_t bytes, struct err *err)
{
	return requests_begin(&x->messages, &(struct message_opts){ .peer = peer, .data = data, .bytes = bytes }, err);
}

static int hier_all_gather(struct comm *c, void *data, int64_t bytes_each, struct err *err)
{
	struct hier_comm *x = hier_of(c);
	struct shm_pieces p = hier_slices(x, (size_t)bytes_each);
	int rc = hier_enter_resting(x, "all-gather", err), me = x->place[c->rank].local;

	if (rc || !bytes_each)
		return rc;
	for (int r = 0; !rc && r < c->world; r++)
		if (x->place[r].node != x->node && hier_holder(x, x->node, r) == me)
			rc = begin_receive(x, r, (char *)data + r * bytes_each, (size_t)bytes_each, err);
	for (int b = 0; !rc && b < x->n_nodes; b++)
		if (b != x->node)
			rc = begin_send(x, x->rank[b][hier_holder(x, b, c->rank)], (char *)data + c->rank * bytes_each,
					(size_t)bytes_each, err);
	if (!rc)
		rc = hier_finish(x, err);
	if (!rc)
		rc = shm_share_pieces(x->local, data, &p, err);
	return hier_end(x, rc);
}

static int hier_broadcast(struct comm *c, void *data, size_t bytes, int root, struct err *err)
{
	struct hier_comm *x = hier_of(c);
	struct shm_piece all = { 0, bytes, hier_holder(x, x->node, root) };
	int rc = hier_enter(x, "broadcast", err);

	if (rc || !bytes)
		return rc;
	for (int b = 0; !rc && c->rank == root && b < x->n_nodes; b++)
		if (b != x->node)
			rc = begin_send(x, x->rank[b][hier_holder(x, b, root)], data, bytes, err);
	if (!rc && x->node != x->place[root].node && x->place[c->rank].local == all.owner)
		rc = begin_receive(x, root, data, bytes, err);
	if (!rc)
		rc = hier_finish(x, err);
	if (!rc)
		rc = shm_share_pieces(x->local, data, &(struct shm_pieces){ &all, 1, bytes }, err);
	return hier_end(x, rc);
}

static int check_peer(const struct comm *c, int peer, struct err *err)
{
	if (peer >= 0 && peer < c->world && peer != c->rank)
		return 0;
	return err_set(err, ERR_USAGE, "rank %d cannot exchange a message with rank %d in a job of %d ranks", c->rank,
		       peer, c->world);
}

static int hier_send(struct comm *c, const void *data, size_t bytes, int to, struct err *err)
{
	struct hier_comm *x = hier_of(c);
	int rc = check_peer(c, to, err);

	if (!rc)
		rc = hier_enter(x, "send", err);
	if (rc)
		return rc;
	if (x->place[to].node == x->node)
		return hier_end(x, x->local->ops->send(x->local, data, bytes, x->place[to].local, err));
	rc = begin_send(x, to, data, bytes, err);
	return hier_end(x, rc ? rc : hier_finish(x, err));
}

static int hier_recv(struct comm *c, void *data, size_t bytes, int from, struct err *err)
{
	struct hier_comm *x = hier_of(c);
	int rc = check_peer(c, from, err);

	if (!rc)
		rc = hier_enter(x, "receive", err);
	if (rc)
		return rc;
	if (x->place[from].node == x->node)
		return hier_end(x, x->local->ops->recv(x->local, data, bytes, x->place[from].local, err));
	rc = begin_receive(x, from, data, bytes, err);
	return hier_end(x, rc ? rc : hier_finish(x, err));
}

static int hier_barrier(struct comm *c, struct err *err)
{
	struct hier_comm *x = hier_of(c);
	char here = 0;
	int rc = hier_enter(x, "barrier", err);

	if (rc)
		return rc;
	rc = x->local->ops->barrier(x->local, err);
	for (int b = 0; !rc && x->place[c->rank].local == 0 && b < x->n_nodes; b++) {
		if (b == x->node)
			continue;
		rc = begin_receive(x, x->rank[b][0], x->scratch + b, 1, err);
		if (!rc)
			rc = begin_send(x, x->rank[b][0], &here, 1, err);
	}
	if (!rc)
		rc = hier_finish(x, err);
	if (!rc)
		rc = x->local->ops->barrier(x->local, err);
	return hier_end(x, rc);
}

/* ---- splitting ----
 *
 * All ranks exchange the color of their group and the address of its link through the communicator that is split. */

struct group_ticket {	      /* what each rank of the split tells the others */
	int32_t color, bytes; /* bytes of the address of its group's link; -1: it could not be opened */
};

struct group_split {		     /* the view of one rank */
	struct hier_comm *all;	     /* is split */
	struct hier_comm *x;	     /* the group's; NULL: it is on one machine, or this rank is in no group */
	struct comm *local;	     /* the group's ranks of this machine */
	int rank, world, nodes;	     /* in the group */
	struct group_ticket *ticket; /* indexed by global rank */
	struct hier_said *said;	     /* indexed by rank in the group */
	size_t address_bytes;	     /* length of the longest address */
	unsigned char *addresses;    /* indexed by global rank; said points into it */
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

	s->addresses = mem_array((size_t)all->comm.world, s->address_bytes + 1);
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

static int hier_split(struct comm *c, int color, struct comm **ret, struct err *err)
{
	struct group_split s = { .all = hier_of(c) };
	int rc;

	s.ticket = mem_array((size_t)c->world, sizeof(*s.ticket));
	s.said = mem_array((size_t)c->world, sizeof(*s.said));
	rc = run_group_split(&s, color, err);
	free(s.ticket);
	free(s.said);
	free(s.addresses);
	if (rc)
		return hier_end(s.all, hier_give_up(s.x, rc));
	*ret = s.x ? &s.x->comm : s.local;
	return 0;
}

/* ---- the table ---- */

static int nodes_alloc(struct comm *c, size_t bytes, void **ret, struct err *err)
{
	struct hier_comm *x = hier_of(c);

	return x->local->ops->alloc(x->local, bytes, ret, err);
}

static int nodes_check(struct comm *c, struct err *err)
{
	struct hier_comm *x = hier_of(c);

	return x->local->ops->check(x->local, err);
}

static void nodes_limit(struct comm *c, double seconds)
{
	struct hier_comm *x = hier_of(c);

	x->messages.timeout_s = seconds;
	x->local->ops->limit(x->local, seconds);
}

static void nodes_abort(struct comm *c)
{
	struct hier_comm *x = hier_of(c);

	x->local->ops->abort(x->local);
}

static void node_group_close(struct comm *c)
{
	hier_free(hier_of(c));
}

static const struct comm_ops nodes_ops = {
	.name = "nodes",
	.allreduce = hier_allreduce,
	.reduce_scatter = hier_reduce_scatter,
	.allreduce_terms = hier_allreduce_terms,
	.reduce_scatter_terms = hier_reduce_scatter_terms,
	.all_gather = hier_all_gather,
	.broadcast = hier_broadcast,
	.send = hier_send,
	.recv = hier_recv,
	.barrier = hier_barrier,
	.alloc = nodes_alloc,
	.split = hier_split,
	.check = nodes_check,
	.limit = nodes_limit,
	.abort = nodes_abort,
	.close = node_group_close,
};

/* ---- opening ---- */

struct rank_address_header { /* in front of the link's address in the rank's message */
	char node[NODES_NAME_BYTES];
	char link[LINK_NAME_BYTES]; /* name of its transport */
};

static int send_address(const struct hier_comm *x, const struct comm_hier_opts *o, const struct err *failure,
			struct err *err)
{
	size_t n = 0;
	const void *address = x ? x->link->module->address(x->link, &n) : NULL;
	struct rank_address_header *s = mem_zalloc(sizeof(*s) + n);
	int rc;

	memcpy(s->node, o->node, strnlen(o->node, sizeof(s->node) - 1));
	memcpy(s->link, o->link->name, strnlen(o->link->name, sizeof(s->link) - 1));
	if (n)
		memcpy(s + 1, address, n);
	rc = bootstrap_round(o->bootstrap, s, sizeof(*s) + n, failure, err);
	free(s);
	return rc;
}

static int check_link(const struct rank_address_header *first, const struct rank_address_header *s, int rank,
		      struct err *err)
{
	if (!strncmp(first->link, s->link, LINK_NAME_BYTES))
		return 0;
	return err_set(err, ERR_USAGE,
		       "rank %d uses --comm %.*s, rank 0 uses %.*s: give all ranks the same --comm", rank,
		       LINK_NAME_BYTES - 1, s->link, LINK_NAME_BYTES - 1, first->link);
}

/* Ranks with the same name are on the same machine: said[].node is the first rank of that name. */
static int read_addresses(struct hier_said *said, const struct bootstrap *b, struct err *err)
{
	for (int r = 0; r < bootstrap_count(b); r++) {
		size_t n, other;
		const struct rank_address_header *s = bootstrap_said(b, r, &n);

		if (n < sizeof(*s))
			return err_set(err, ERR_PEER, "rank %d sent no address", r);
		if (check_link(bootstrap_said(b, 0, &other), s, r, err))
			return ERR_USAGE;
		said[r] = (struct hier_said){ .number = r, .address = s + 1, .bytes = n - sizeof(*s) };
		while (strncmp(((const struct rank_address_header *)bootstrap_said(b, said[r].node, &other))->node,
			       s->node, NODES_NAME_BYTES))
			said[r].node++;
	}
	return 0;
}

int comm_hier_open(struct comm **ret, const struct comm_hier_opts *o, struct err *err)
{
	struct link_opts lo = { .rank = bootstrap_self(o->bootstrap), .world = bootstrap_count(o->bootstrap),
				.sockets = o->sockets };
	struct hier_said *said = mem_array((size_t)lo.world, sizeof(*said));
	struct err failure = ERR_INIT;
	struct hier_comm *x = NULL;
	char interface[HIER_INTERFACE_BYTES];
	int rc;

	bootstrap_interface(o->bootstrap, interface, sizeof(interface));
	lo.interface = interface;
	hier_begin_life(&x, o->local, o->link, &lo, &failure);
	rc = send_address(x, o, &failure, err);
	if (!rc)
		rc = read_addresses(said, o->bootstrap, err);
	if (!rc)
		rc = hier_set_up(x, said, err);
	free(said);
	if (rc)
		return hier_give_up(x, rc);
	x->comm.ops = &nodes_ops;
	x->messages.timeout_s = o->timeout_s;
	*ret = &x->comm;
	return 0;
}
