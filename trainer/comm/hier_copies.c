/* hier_copies.c: gathers, broadcasts, messages and barriers over several machines. A rank's slice goes to one rank of
 * each other machine, which copies it to the other ranks there. */
#include "trainer/comm/hier_base.h"

static int begin_send(struct hier_comm *x, int peer, const void *data, size_t bytes, struct err *err)
{
	const struct message_opts o = { .peer = peer, .sends = true, .data = (void *)(uintptr_t)data, .bytes = bytes };

	return requests_begin(&x->messages, &o, err);
}

static int begin_receive(struct hier_comm *x, int peer, void *data, size_t bytes, struct err *err)
{
	return requests_begin(&x->messages, &(struct message_opts){ .peer = peer, .data = data, .bytes = bytes }, err);
}

int hier_all_gather(struct comm *c, void *data, int64_t bytes_each, struct err *err)
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
			rc = begin_send(x, x->rank[b][hier_holder(x, b, c->rank)],
					(char *)data + c->rank * bytes_each, (size_t)bytes_each, err);
	if (!rc)
		rc = hier_finish(x, err);
	if (!rc)
		rc = shm_share_pieces(x->local, data, &p, err);
	return hier_end(x, rc);
}

int hier_broadcast(struct comm *c, void *data, size_t bytes, int root, struct err *err)
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
	return err_set(err, ERR_USAGE, "message between rank %d and rank %d of %d", c->rank, peer, c->world);
}

int hier_send(struct comm *c, const void *data, size_t bytes, int to, struct err *err)
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

int hier_recv(struct comm *c, void *data, size_t bytes, int from, struct err *err)
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

int hier_barrier(struct comm *c, struct err *err)
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
