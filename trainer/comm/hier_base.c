/* SPDX-License-Identifier: Apache-2.0 */
/* hier_base.c: see hier_base.h. */
#include "tracker/base/round.h"
#include "tracker/mem/mem.h"
#include "trainer/comm/hier_base.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- life ---- */

int hier_begin_life(struct hier_comm **ret, struct comm *local, const struct link_module *link,
		    const struct link_opts *lo, struct err *err)
{
	struct hier_comm *x = mem_zalloc(sizeof(*x));
	int rc;

	x->comm = (struct comm){ .rank = lo->rank, .world = lo->world, .terms = true };
	x->local = local;
	x->sockets = lo->sockets;
	snprintf(x->interface, sizeof(x->interface), "%s", lo->interface);
	rc = link->open(&x->link, lo, err);
	if (rc)
		return hier_give_up(x, rc);
	*ret = x;
	return 0;
}

void hier_free(struct hier_comm *x)
{
	struct err ignored;

	if (!x)
		return;
	if (x->link) /* an aborted job does not wait for messages in progress */
		x->link->module->close(x->link, !x->broken && x->local && !shm_check(x->local, &ignored));
	if (x->local) {
		shm_while_waiting(x->local, NULL, NULL);
		x->local->ops->close(x->local);
	}
	for (int b = 0; x->rank && b < x->n_nodes; b++)
		free(x->rank[b]);
	free(x->rank);
	free(x->size);
	free(x->place);
	free(x->number);
	requests_free(&x->messages);
	free(x->scratch);
	free(x->piece);
	free(x->from);
	free(x->run);
	free(x->run_node);
	free(x->shown);
	free(x->roots);
	free(x);
}

int hier_give_up(struct hier_comm *x, int rc)
{
	if (x)
		x->broken = true;
	hier_free(x);
	return rc;
}

/* Numbers the machines in the order of their first ranks, and finds the place of every rank on its machine. */
static int find_rank_places(struct hier_comm *x, const struct hier_said *said, struct err *err)
{
	int world = x->comm.world;

	x->place = mem_array((size_t)world, sizeof(*x->place));
	x->size = mem_array((size_t)world, sizeof(*x->size));
	x->rank = mem_array((size_t)world, sizeof(*x->rank));
	x->number = mem_array((size_t)world, sizeof(*x->number));
	for (int r = 0; r < world; r++) {
		int like = 0, b;

		while (said[like].node != said[r].node)
			like++;
		b = like == r ? x->n_nodes++ : x->place[like].node;
		if (like == r)
			x->rank[b] = mem_array((size_t)world, sizeof(*x->rank[b]));
		x->place[r] = (struct hier_place){ b, x->size[b] };
		x->number[r] = said[r].number;
		x->rank[b][x->size[b]++] = r;
	}
	x->node = x->place[x->comm.rank].node;
	x->least = x->size[0];
	for (int b = 0; b < x->n_nodes; b++)
		x->least = x->size[b] < x->least ? x->size[b] : x->least;
	if (x->size[x->node] != x->local->world || x->place[x->comm.rank].local != x->local->rank)
		return err_set(err, ERR_USAGE,
			       "rank %d is number %d of %d on this machine, but number %d of %d among "
			       "the connected ranks: does another machine have the same name?",
			       x->comm.rank, x->local->rank, x->local->world, x->place[x->comm.rank].local,
			       x->size[x->node]);
	return 0;
}

/* Called while this rank waits for ranks of its machine: ranks of other machines may be ahead and connect or send. */
static void progress_link(void *user)
{
	struct link *l = user;

	l->module->progress(l);
}

static void allocate_hier_memory(struct hier_comm *x)
{
	size_t world = (size_t)x->comm.world, nodes = (size_t)x->n_nodes;

	x->piece = mem_array(world, sizeof(*x->piece));
	x->from = mem_array(nodes, sizeof(*x->from));
	x->roots = mem_array(HIER_AHEAD * nodes, sizeof(*x->roots));
	x->shown = mem_array(world, sizeof(*x->shown));
	x->run = mem_array(world, sizeof(*x->run));
	x->run_node = mem_array(world, sizeof(*x->run_node));
	x->scratch = mem_alloc(HIER_AHEAD * nodes * HIER_PART_BYTES);
	x->messages.link = x->link;
	x->messages.local = x->local;
	shm_while_waiting(x->local, progress_link, x->link);
	x->messages.number = x->number;
	requests_take_memory(&x->messages, HIER_AHEAD * x->comm.world + (4 * HIER_AHEAD + 2) * x->n_nodes);
}

/* Finds the runs of adjacent ranks on one machine. */
static void find_rank_runs(struct hier_comm *x)
{
	for (int r = 0; r < x->comm.world; r++) {
		const int node = x->place[r].node;

		if (!x->n_runs || x->run_node[x->n_runs - 1] != node) {
			x->run_node[x->n_runs] = node;
			x->run[x->n_runs++] = (struct reduction_tree_run){ r, 0 };
		}
		x->run[x->n_runs - 1].n++;
	}
}

int hier_set_up(struct hier_comm *x, const struct hier_said *said, struct err *err)
{
	int rc = find_rank_places(x, said, err);

	if (rc)
		return rc;
	allocate_hier_memory(x);
	find_rank_runs(x);
	for (int r = 0; !rc && r < x->comm.world; r++)
		if (x->place[r].node != x->node)
			rc = x->link->module->connect(x->link, r, said[r].address, said[r].bytes, err);
	return rc;
}

/* ---- collectives ---- */

int hier_enter(struct hier_comm *x, const char *what, struct err *err)
{
	x->messages.what = what;
	x->messages.sleeps_while_waiting = false;
	if (!x->broken)
		return 0;
	return err_set(err, ERR_PEER, "%s: the ranks lost their connection earlier", what);
}

int hier_enter_resting(struct hier_comm *x, const char *what, struct err *err)
{
	const int rc = hier_enter(x, what, err);

	x->messages.sleeps_while_waiting = true;
	return rc;
}

int hier_end(struct hier_comm *x, int rc)
{
	x->comm.sent_nodes = x->messages.sent;
	x->comm.sent = x->local->sent + x->comm.sent_nodes;
	if (rc) {
		x->broken = true;
		requests_drop(&x->messages);
		x->local->ops->abort(x->local);
	}
	return rc;
}

int hier_finish(struct hier_comm *x, struct err *err)
{
	return requests_await_all(&x->messages, err);
}

int hier_holder(const struct hier_comm *x, int node, int r)
{
	return x->place[r].node == node ? x->place[r].local : x->place[r].local % x->size[node];
}

struct shm_pieces hier_slices(struct hier_comm *x, size_t bytes_each)
{
	for (int r = 0; r < x->comm.world; r++)
		x->piece[r] = (struct shm_piece){ (size_t)r * bytes_each, bytes_each, hier_holder(x, x->node, r) };
	return (struct shm_pieces){ x->piece, x->comm.world, (size_t)x->comm.world * bytes_each };
}

struct hier_slice hier_slice_of(size_t count, int i, int n)
{
	size_t each = (count + (size_t)n - 1) / (size_t)n, first;

	each = round_up_bytes(each, HIER_ALIGN);
	first = each * (size_t)i;
	if (first >= count)
		return (struct hier_slice){ count, 0 };
	return (struct hier_slice){ first, count - first < each ? count - first : each };
}

unsigned char *hier_scratch(const struct hier_comm *x, size_t at)
{
	return x->scratch + at % HIER_AHEAD * (size_t)x->n_nodes * HIER_PART_BYTES;
}

int hier_begin_gather(struct hier_comm *x, const struct hier_chunk *c, bool sends, struct err *err)
{
	const size_t each = dtype_bytes(c->dtype), due = c->at + HIER_AHEAD;
	const int me = x->place[x->comm.rank].local;
	int rc = 0;

	for (int b = 0; !rc && b < x->n_nodes; b++) {
		const struct hier_slice s = hier_slice_of(c->count, sends ? x->node : b, x->n_nodes);

		if (b != x->node)
			rc = requests_begin(&x->messages, &(struct message_opts){ x->rank[b][me], sends,
					    c->data + s.first * each, s.count * each, due }, err);
	}
	return rc;
}

/* All ranks begin their messages in one order: those of chunks 0 to HIER_AHEAD - 1, what adding chunk 0 begins, those
 * of chunk HIER_AHEAD, what adding chunk 1 begins, and so on. */
int hier_in_turns(struct hier_comm *x, size_t chunks, const struct hier_turns *t, struct err *err)
{
	int rc = 0;

	for (size_t at = 0; !rc && at < chunks && at < HIER_AHEAD; at++)
		rc = t->begin(t->user, at, err);
	for (size_t at = 0; !rc && at < chunks; at++) {
		rc = requests_await(&x->messages, at, err);
		if (!rc)
			rc = t->add(t->user, at, err);
		if (!rc && at + HIER_AHEAD < chunks)
			rc = t->begin(t->user, at + HIER_AHEAD, err);
	}
	return rc ? rc : hier_finish(x, err);
}
