/* hier.c: opens hierarchical communicators: shared memory within each machine, messages between machines. The
 * collectives are in hier_sums.c and hier_leaves.c (sums), hier_copies.c (copies) and hier_groups.c (splits);
 * hier_base.c has what they share. */
#include "trainer/comm/hier.h"

#include <stdlib.h>
#include <string.h>

#include "trainer/comm/hier_base.h"

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
	struct rank_address_header *s = calloc(1, sizeof(*s) + n);
	int rc;

	if (!s)
		return err_set(err, ERR_NOMEM, "out of memory: addresses");
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
			       s->node,
			       NODES_NAME_BYTES))
			said[r].node++;
	}
	return 0;
}

int comm_hier_open(struct comm **ret, const struct comm_hier_opts *o, struct err *err)
{
	struct link_opts lo = { .rank = bootstrap_self(o->bootstrap), .world = bootstrap_count(o->bootstrap),
				.sockets = o->sockets };
	struct hier_said *said = calloc((size_t)lo.world, sizeof(*said));
	struct err failure = ERR_INIT;
	struct hier_comm *x = NULL;
	char interface[HIER_INTERFACE_BYTES];
	int rc;

	bootstrap_interface(o->bootstrap, interface, sizeof(interface));
	lo.interface = interface;
	if (!said)
		err_set(&failure, ERR_NOMEM, "out of memory: %d ranks", lo.world);
	hier_begin_life(&x, o->local, o->link, &lo, failure.code ? &(struct err)ERR_INIT : &failure);
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
