/* SPDX-License-Identifier: Apache-2.0 */
/* dp.c: data parallel in one process, like torch.nn.DataParallel: for comparison. Device 0 loads the batch, sends every
 * device its part and a copy of the parameters, and adds the gradients of all devices before its update. Devices are
 * the slots of one schedule (schedule.h): each has its own memory for its part, its copies and its gradients. The
 * devices of a host are its cores, which the kernels of all devices use in turn. */
#include "trainer/ops/copy/copy.h"
#include "trainer/strategies/strategy_inside.h"

/* Copies a parameter to every device; updates, added after this pass, change device 0's. */
static void copy_param_to_devices(struct graph *g, struct tensor *p)
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
		return;
	n->stream = STREAM_COPY_IN;
	n->phase = PHASE_COMM;
	n->part = PART_FORWARD;
	graph_move(g, n->id, 0);
	graph_replace_uses(g, p, own, 1);
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
	for (int i = 0, n = g->n_tensors; i < n && !graph_failed(g); i++)
		if (g->tensors[i]->kind == TENSOR_PARAM && graph_count_uses(g, g->tensors[i]))
			copy_param_to_devices(g, g->tensors[i]);
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
