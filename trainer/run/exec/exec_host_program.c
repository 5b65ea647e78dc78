/* SPDX-License-Identifier: Apache-2.0 */
/* exec_host_program.c: turns a program's schedule into items with kernel and operands, and runs and times an item. */
#include "trainer/run/exec/exec_inside.h"

#include <stdlib.h>

#include "tracker/mem/mem.h"

static bool schedule_item_waits(const struct schedule_item *s)
{
	for (int k = 0; k < STREAM_COUNT; k++)
		if (s->wait[k])
			return true;
	return false;
}

/* Fills one item from the schedule: its kernel, operands, and waits. */
static void fill_host_item(struct host_item *it, const struct program *p, int index, const struct host_places *at)
{
	const struct schedule_item *s = &p->schedule.items[index];
	const struct node *n = s->node;
	unsigned char *workspace = at->prepared->slab[SPACE_PRIVATE];
	void **operands = arena_array(p->graph->arena, (size_t)(n->n_in + n->n_out) + 1, sizeof(*operands));

	for (int i = 0; i < n->n_in; i++)
		operands[i] = prepared_slot(at->prepared, n->in[i], s->slot);
	for (int i = 0; i < n->n_out; i++)
		operands[n->n_in + i] = prepared_slot(at->prepared, n->out[i], s->slot);
	*it = (struct host_item){
		.kernel = program_kernel(&at->prepared->opts, n),
		.state = p->state[n->id],
		.index = index,
		.wait = schedule_item_waits(s) ? s->wait : NULL,
		.signal = s->signal,
		.collective = n->op->collective,
		.feeds = s->feeds,
		.slot = s->slot,
		.kind = exec_time_of(n),
		.node = n,
		.args = { .in = operands,
			  .out = operands + n->n_in,
			  .page = &at->page[s->slot],
			  .workspace = n->workspace_bytes ? workspace + plan_workspace(n, s->slot) : NULL },
	};
}

void host_program_fill(struct host_program *ep, const struct program *p, const struct host_places *at)
{
	ep->program = p;
	for (int s = 0; s < STREAM_COUNT; s++)
		ep->items[s] = mem_array((size_t)p->schedule.n, sizeof(*ep->items[s]));
	for (int i = 0; i < p->schedule.n; i++) {
		enum stream s = p->schedule.items[i].stream;

		fill_host_item(&ep->items[s][ep->n[s]++], p, i, at);
	}
}

void host_program_done(struct host_program *ep)
{
	for (int s = 0; s < STREAM_COUNT; s++)
		free(ep->items[s]);
	free(ep->node_seconds);
}

int host_item_run(struct host_item *it, struct err *err)
{
	double start;
	int rc;

	if (!it->seconds)
		return kernel_run(it->kernel, it->state, &it->args, err);
	start = clock_mono_s();
	rc = kernel_run(it->kernel, it->state, &it->args, err);
	*it->seconds += clock_mono_s() - start;
	return rc;
}

void host_program_profile(struct host_program *ep)
{
	exec_time_begin(&ep->node_seconds, ep->program);
	for (int s = 0; s < STREAM_COUNT; s++)
		for (int i = 0; i < ep->n[s]; i++)
			ep->items[s][i].seconds = &ep->node_seconds[ep->items[s][i].node->id];
}
