/* shm_usage.c: marks the pages of each peer's memory that collectives touch (comm/shm.c): a sum touches this rank's
 * slice of every rank's buffer, a gather each rank's own slice. Units and buckets of different times share addresses,
 * so pages are marked instead of adding bytes. */
#include "trainer/program/shm_usage.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/graph/slab.h"
#include "trainer/ops/ops.h"
#include "trainer/ops/partial_sums/partial_sums.h"

#define PAGE_BYTES 4096
#define SMALL_BYTES 16384 /* as in communicators: such sums use their own memory */
#define RANKS_MAX 256	  /* of a machine; plans of more ranks are not reckoned */

struct peer_meeting { /* a group's ranks on this machine */
	/* their number; numbers of this rank and of the peer among them; peer -1: it is in another group */
	int ranks, own, peer;
};

struct page_marks { /* pages of one peer's memory */
	unsigned char *page;
	size_t n;
};

static struct peer_meeting find_peer_meeting(const struct program_opts *o, enum group kind, int peer)
{
	const struct strategy *s = o->strategy;
	const bool all = kind == GROUP_WORLD || !s->group_of;
	const int group = all ? 0 : s->group_of(&o->sharing, kind, o->sharing.rank);
	struct peer_meeting m = { .peer = -1 };

	for (int r = o->here.first; r < o->here.first + o->here.n; r++) {
		if (!all && s->group_of(&o->sharing, kind, r) != group)
			continue;
		m.own = r == o->sharing.rank ? m.ranks : m.own;
		m.peer = r == peer ? m.ranks : m.peer;
		m.ranks++;
	}
	return m;
}

static void mark_pages(struct page_marks *m, size_t first, size_t bytes)
{
	const size_t begin = first / PAGE_BYTES, end = (first + bytes + PAGE_BYTES - 1) / PAGE_BYTES;

	if (bytes && begin < m->n)
		memset(m->page + begin, 1, (end < m->n ? end : m->n) - begin);
}

/* Marks slice i of each term; there are as many slices as ranks. */
static void mark_slices(struct page_marks *m, size_t at, const struct node *n, const struct peer_meeting *meet, int i)
{
	const bool sum = n->op->id == OP_allreduce || n->op->id == OP_reduce_scatter;
	const struct partial_sums_attr *terms = sum ? n->attr : NULL;
	const size_t room = terms && terms->room ? (size_t)terms->room : 1, bytes = tensor_bytes(n->in[0]) / room;
	const size_t each = slab_align((bytes + (size_t)meet->ranks - 1) / (size_t)meet->ranks, PLAN_ALIGN_BYTES);
	const size_t first = each * (size_t)i;

	if (n->op->id == OP_allreduce && tensor_bytes(n->in[0]) <= SMALL_BYTES)
		return;
	for (size_t k = 0; k < room && first < bytes; k++)
		mark_pages(m, at + k * bytes + first, bytes - first < each ? bytes - first : each);
}

static void mark_node(struct page_marks *m, const struct program_opts *o, const struct node *n, int slots, int peer)
{
	const enum op_id id = (enum op_id)n->op->id;
	struct peer_meeting meet;

	if ((id != OP_allreduce && id != OP_reduce_scatter && id != OP_all_gather) || n->in[0]->space != SPACE_COMM)
		return;
	meet = find_peer_meeting(o, n->group, peer);
	for (int s = 0; meet.peer >= 0 && s < slots; s++)
		mark_slices(m, plan_offset(n->in[0], s), n, &meet, id == OP_all_gather ? meet.peer : meet.own);
}

static size_t touched_bytes(struct page_marks *m, const struct prepared *p, int peer)
{
	size_t pages = 0;

	memset(m->page, 0, m->n);
	for (int i = 0; i < p->n_programs; i++)
		for (int k = 0; k < p->program[i]->graph->n_nodes; k++)
			mark_node(m, &p->opts, p->program[i]->graph->nodes[k], p->program[i]->schedule.slots, peer);
	for (size_t i = 0; i < m->n; i++)
		pages += m->page[i];
	return pages * PAGE_BYTES;
}

int shm_usage_bytes(const struct prepared *p, size_t *ret, struct err *err)
{
	const struct program_opts *o = &p->opts;
	struct page_marks m = { .n = (p->plan.slab_bytes[SPACE_COMM] + PAGE_BYTES - 1) / PAGE_BYTES };

	*ret = 0;
	if (o->backend->streams || o->here.n < 2 || o->here.n > RANKS_MAX || !m.n)
		return 0;
	m.page = malloc(m.n);
	if (!m.page)
		return err_set(err, ERR_NOMEM, "out of memory: plan");
	for (int r = o->here.first; r < o->here.first + o->here.n; r++)
		*ret += r == o->sharing.rank ? 0 : touched_bytes(&m, p, r);
	free(m.page);
	return 0;
}
