/* SPDX-License-Identifier: Apache-2.0 */
/* dp.c: data parallel in one process, like torch.nn.DataParallel: for comparison. Device 0 loads the batch, sends every
 * device its part and a copy of the parameters, and adds the gradients of all devices before its update. Devices are
 * the slots of one schedule (schedule.h): each has its own memory for its part, its copies and its gradients. The
 * devices of a host are its cores, which the kernels of all devices use in turn. */
#include "trainer/ops/copy/copy.h"
#include "trainer/strategies/strategy_inside.h"

/* Adds a copy of a parameter for every device; updates, added after this pass, change device 0's. */
static struct tensor *copy_param_to_devices(struct graph *g, struct tensor *p)
{
	const struct copy_attr attr = { .file = false };
	struct tensor like = *p, *own;
	struct node *n;

	like.name = graph_printf(g, "%s.device", p->name);
	like.life = LIFE_MICRO;
	like.grad = NULL;
	own = like.name ? graph_tensor(g, &like) : NULL;
	n = own ? copy_add(g, p, own, &attr) : NULL;
	if (!n)
		return NULL;
	n->stream = STREAM_COPY_IN;
	n->phase = PHASE_COMM;
	n->part = PART_FORWARD;
	return own;
}

/* Replaces the parameters that the first n nodes read by their copies, NULL for none. */
static void read_copies(struct graph *g, int n, struct tensor *const *copies)
{
	for (int i = 0; i < n; i++)
		for (int k = 0; k < g->nodes[i]->n_in; k++)
			if (g->nodes[i]->in[k] && copies[g->nodes[i]->in[k]->id])
				g->nodes[i]->in[k] = copies[g->nodes[i]->in[k]->id];
}

/* Copies the parameters that nodes read, at the begin of the program. */
static void copy_params_to_devices(struct graph *g)
{
	const int n = g->n_tensors, from = g->n_nodes;
	const int *uses = graph_use_counts(g);
	struct tensor **copies = graph_array(g, n, sizeof(struct tensor *));
	int *front = graph_array(g, n, sizeof(*front));

	for (int i = 0; i < n && !graph_failed(g); i++) {
		front[i] = -1;
		if (g->tensors[i]->kind == TENSOR_PARAM && uses[i])
			copies[i] = copy_param_to_devices(g, g->tensors[i]);
	}
	if (graph_failed(g))
		return;
	read_copies(g, from, copies);
	graph_spread(g, from, front);
}

static int dp_rewrite(struct graph *g, const struct strategy_opts *o, struct err *err)
{
	if (!g->training)
		return 0;
	share_micros(g, o);
	if (terms_wanted(o)) {
		terms_of_results(g, o);
		terms_of_statistics(g, o);
		terms_of_gradients(g, o);
	}
	if (!graph_failed(g))
		copy_params_to_devices(g);
	return share_failed(g, err);
}

static int64_t dp_micro(const struct strategy_opts *o, int64_t samples)
{
	return share_part(o, samples, o->devices);
}

/* Runs one device after another: a device's activations are freed before the next one begins. */
static void dp_turns(struct schedule_turn *ret, const struct strategy_opts *o, int micros)
{
	(void)o;
	schedule_pipeline(ret, PIPELINE_1F1B, 1, 0, micros);
}

const struct strategy strategy_dp = {
	.rewrite = dp_rewrite,
	.micro = dp_micro,
	.turns = dp_turns,
};
