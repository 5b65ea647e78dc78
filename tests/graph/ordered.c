/* SPDX-License-Identifier: Apache-2.0 */
/* ordered.c: see ordered.h. Bytes are divided where any range begins or ends; for each piece and stream the last item
 * that wrote it and the last that read it are stored. Streams run in order: what follows such an item follows the
 * earlier ones too. */
#include "tests/graph/ordered.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct access access_to(const struct tensor *t, int slot, bool written)
{
	size_t at = plan_offset(t, slot);

	return (struct access){ t->space, at, at + tensor_bytes(t), written };
}

static int add_access(struct access *ret, int n, struct access r)
{
	ret[n] = r;
	return n + (r.from < r.to);
}

int accesses_most(const struct graph *g)
{
	int most = 0, inputs = 0;

	for (int i = 0; i < g->n_nodes; i++)
		most = g->nodes[i]->n_in + g->nodes[i]->n_out > most ? g->nodes[i]->n_in + g->nodes[i]->n_out : most;
	for (int i = 0; i < g->n_tensors; i++)
		inputs += g->tensors[i]->kind == TENSOR_INPUT;
	return most + inputs + 1;
}

int accesses_of(const struct graph *g, const struct schedule_item *it, struct access *ret)
{
	const struct node *n = it->node;
	const size_t workspace = n->workspace_bytes ? plan_workspace(n, it->slot) : 0;
	int count = 0;

	for (int k = 0; k < n->n_in; k++)
		if (n->in[k])
			count = add_access(ret, count, access_to(n->in[k], it->slot, false));
	for (int k = 0; k < n->n_out; k++)
		if (n->out[k])
			count = add_access(ret, count, access_to(n->out[k], it->slot, true));
	for (int i = 0; it->feeds && i < g->n_tensors; i++)
		if (g->tensors[i]->kind == TENSOR_INPUT && g->tensors[i]->life == LIFE_MICRO)
			count = add_access(ret, count, access_to(g->tensors[i], it->slot, true));
	return add_access(ret, count,
			 (struct access){ SPACE_PRIVATE, workspace, workspace + n->workspace_bytes, true });
}

bool accesses_conflict(const struct access *a, const struct access *b)
{
	return a->space == b->space && a->from < b->to && b->from < a->to && (a->written || b->written);
}

/* What is complete when an item begins: of each stream, its items before a position. */
struct known {
	int before[STREAM_COUNT];
};

static void learn(struct known *k, const struct known *all, int position)
{
	for (int s = 0; position && s < STREAM_COUNT; s++)
		if (all[position - 1].before[s] > k->before[s])
			k->before[s] = all[position - 1].before[s];
}

/* Streams run in order. A wait for the items of stream w before a position is a wait for the last of them. */
static void find_known(const struct schedule *s, struct known *all)
{
	int latest[STREAM_COUNT] = { 0 };

	for (int i = 0; i < s->n; i++) {
		const struct schedule_item *it = &s->items[i];
		struct known k = { { 0 } };

		learn(&k, all, latest[it->stream]);
		k.before[it->stream] = latest[it->stream];
		for (int w = 0; w < STREAM_COUNT; w++) {
			int position = it->wait[w];

			while (position && s->items[position - 1].stream != (enum stream)w)
				position--;
			learn(&k, all, position);
			k.before[w] = position > k.before[w] ? position : k.before[w];
		}
		all[i] = k;
		latest[it->stream] = i + 1;
	}
}

struct piece { /* positions after the last item of each stream */
	int wrote[STREAM_COUNT], read[STREAM_COUNT];
};

struct pieces {
	size_t *cut[SPACE_COUNT]; /* where pieces begin, sorted */
	size_t n[SPACE_COUNT];
	struct piece *of[SPACE_COUNT];
};

static int by_size(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return x < y ? -1 : x > y;
}

static size_t sort_once(size_t *cut, size_t n)
{
	size_t kept = 0;

	qsort(cut, n, sizeof(*cut), by_size);
	for (size_t i = 0; i < n; i++)
		if (!kept || cut[kept - 1] != cut[i])
			cut[kept++] = cut[i];
	return kept;
}

static void add_cuts(struct pieces *p, const struct access *r)
{
	p->cut[r->space][p->n[r->space]++] = r->from;
	p->cut[r->space][p->n[r->space]++] = r->to;
}

static void cut_pieces(struct pieces *p, const struct graph *g, const struct schedule *s, struct access *room)
{
	size_t cuts[SPACE_COUNT] = { 0 };

	for (int i = 0; i < s->n; i++)
		for (int k = accesses_of(g, &s->items[i], room); k-- > 0;)
			cuts[room[k].space] += 2;
	for (int space = 0; space < SPACE_COUNT; space++)
		p->cut[space] = test_calloc(cuts[space] + 1, sizeof(size_t));
	for (int i = 0; i < s->n; i++)
		for (int k = accesses_of(g, &s->items[i], room); k-- > 0;)
			add_cuts(p, &room[k]);
	for (int space = 0; space < SPACE_COUNT; space++) {
		p->n[space] = sort_once(p->cut[space], p->n[space]);
		p->of[space] = test_calloc(p->n[space] + 1, sizeof(struct piece));
	}
}

/* The first piece of r; r begins at a cut. */
static size_t first_of(const struct pieces *p, const struct access *r)
{
	const size_t *cut = p->cut[r->space],
		     *at = bsearch(&r->from, cut, p->n[r->space], sizeof(*cut), by_size);

	return (size_t)(at - cut);
}

/* The item that accessed the piece and is not known to be complete; -1: none. A read does not conflict with reads. */
static int unknown_before(const struct piece *p, const struct known *k, bool writes)
{
	for (int s = 0; s < STREAM_COUNT; s++) {
		if (p->wrote[s] > k->before[s])
			return p->wrote[s] - 1;
		if (writes && p->read[s] > k->before[s])
			return p->read[s] - 1;
	}
	return -1;
}

static int disturbs(const struct pieces *p, const struct access *r, const struct known *k)
{
	int found = -1;

	for (size_t i = first_of(p, r); found < 0 && p->cut[r->space][i] < r->to; i++)
		found = unknown_before(&p->of[r->space][i], k, r->written);
	return found;
}

static void touch(struct pieces *p, const struct access *r, enum stream s, int item)
{
	for (size_t i = first_of(p, r); p->cut[r->space][i] < r->to; i++)
		(r->written ? p->of[r->space][i].wrote : p->of[r->space][i].read)[s] = item + 1;
}

bool ordered_fails(const struct graph *g, const struct schedule *s, struct unordered *ret)
{
	struct access *room = test_calloc((size_t)accesses_most(g), sizeof(*room));
	struct known *known = test_calloc((size_t)s->n + 1, sizeof(*known));
	struct pieces p = { .n = { 0 } };
	int found = -1;

	cut_pieces(&p, g, s, room);
	find_known(s, known);
	for (int i = 0; found < 0 && i < s->n; i++) {
		const int n = accesses_of(g, &s->items[i], room);

		for (int k = 0; found < 0 && k < n; k++) {
			found = disturbs(&p, &room[k], &known[i]);
			if (found >= 0)
				*ret = (struct unordered){ found, i, room[k] };
		}
		for (int k = 0; k < n; k++)
			touch(&p, &room[k], s->items[i].stream, i);
	}
	for (int space = 0; space < SPACE_COUNT; space++) {
		test_free(p.cut[space]);
		test_free(p.of[space]);
	}
	test_free(known);
	test_free(room);
	return found >= 0;
}
