/* SPDX-License-Identifier: Apache-2.0 */
/* pdp_cost.c: parallel pipelines of stages. A stage has a part of the blocks. 1F1B keeps as many micro-batches as
 * there are stages from it to the last, GPipe all of them. Stages wait for each other before the first and after the
 * last micro-batch: the bubble. Every stage sums its gradients over a separate ring. */
#include "trainer/advise/advise.h"

#include <math.h>

static bool pdp_takes(const struct advise_model *m, const struct advise_layout *l)
{
	return l->stages > 1 && l->ranks % l->stages == 0 && l->stages <= m->blocks && l->micros > 0;
}

/* Returns the number of blocks of the last stage, which also has the loss, that makes the slowest stage fastest. */
static int last_blocks(const struct advise_model *m, const struct advise_layout *l)
{
	const double front = m->front.forward_s + m->front.backward_s, back = m->back.forward_s + m->back.backward_s;
	const double block = m->block.forward_s + m->block.backward_s;
	double best = INFINITY;
	int found = 1;

	for (int last = 1; last <= m->blocks - l->stages + 1; last++) {
		double others = ceil((double)(m->blocks - last) / (l->stages - 1)) * block + front;
		double most = fmax(others, last * block + back);

		if (most >= best)
			continue;
		best = most;
		found = last;
	}
	return found;
}

/* The other blocks are distributed evenly, with the remainder on the later stages. */
int advise_stage_blocks(int blocks, int last_blocks, int stages, int stage)
{
	const int rest = blocks - last_blocks, n = stages - 1;

	return stage == n ? last_blocks : rest / n + (stage >= n - rest % n);
}

static int stage_block_count(const struct advise_model *m, const struct advise_layout *l, int stage)
{
	return advise_stage_blocks(m->blocks, last_blocks(m, l), l->stages, stage);
}

static double stage_stored_bytes(const struct advise_model *m, const struct advise_layout *l, int stage)
{
	return stage_block_count(m, l, stage) * m->block.stored_bytes + (stage == 0 ? m->front.stored_bytes : 0) +
	       (stage == l->stages - 1 ? m->back.stored_bytes + m->tied_bytes : 0);
}

static double stage_gradient_bytes(const struct advise_model *m, const struct advise_layout *l, int stage)
{
	return m->master_bytes *
	       (stage_block_count(m, l, stage) * m->block.trained + (stage == 0 ? m->front.trained : 0) +
		(stage == l->stages - 1 ? m->back.trained + m->tied_trained : 0));
}

static int micros_in_flight(const struct advise_layout *l, int stage)
{
	const int waits = l->stages - stage;

	return l->gpipe || waits > l->micros ? l->micros : waits;
}

/* Bytes of a stage by category, and bytes sent. */
static void pdp_state(struct advise_cost *ret, const struct advise_model *m, const struct advise_layout *l, int stage)
{
	const double grads = stage_gradient_bytes(m, l, stage), slots = micros_in_flight(l, stage);
	const bool last = stage == l->stages - 1;
	/* Each waiting micro-batch has its own casts of parameters. */
	const double kept = stage_block_count(m, l, stage) * (m->block.kept_bytes + m->block.cast_bytes) +
		(stage == 0 ? m->front.kept_bytes : 0) + (last ? m->back.kept_bytes + m->back.cast_bytes : 0);
	const double ends = m->master_bytes * m->tied_trained;

	ret->blocks = m->blocks;
	ret->last_blocks = last_blocks(m, l);
	ret->bytes[PLAN_PARAMETERS] = stage_stored_bytes(m, l, stage);
	ret->bytes[PLAN_OPTIMIZER] = m->moments * grads;
	ret->stays_bytes = 3 * m->block.stored_bytes;
	/* In addition to the sums: a new gradient, until it is added to its sum. */
	ret->bytes[PLAN_GRADIENTS] =
		grads + m->master_bytes * (last ? fmax(m->back.largest, m->tied_trained) : m->block.largest);
	ret->bytes[PLAN_ACTIVATIONS] = slots * kept + (last ? m->work_bytes : m->stage_bytes);
	ret->bytes[PLAN_WORKSPACE] = last ? m->workspace_bytes : m->stage_workspace_bytes;
	ret->bytes[PLAN_INPUTS] = l->micros * m->input_bytes;
	ret->sent[ADVISE_ALLREDUCE] = advise_ring(grads, (double)l->ranks / l->stages, true);
	if (stage == 0 || last)
		ret->sent[ADVISE_ALLREDUCE] += advise_ring(ends, 2, true);
	ret->sent[ADVISE_PEER] = l->micros * (m->cross_back_bytes * (stage > 0) + m->cross_bytes * !last);
}

static double stage_seconds(const struct advise_model *m, const struct advise_layout *l, int stage, bool forward)
{
	const int n = stage_block_count(m, l, stage);
	double s = n * (forward ? m->block.forward_s : m->block.backward_s);

	if (stage == 0)
		s += forward ? m->front.forward_s : m->front.backward_s;
	if (stage == l->stages - 1)
		s += forward ? m->back.forward_s : m->back.backward_s;
	return s;
}

/* The rings of the stages share the links between machines. */
static double gradient_sum_seconds(const struct advise_model *m, const struct advise_layout *l,
				   const struct hardware *h, int stage)
{
	const int replicas = l->ranks / l->stages;
	const double bytes = stage_gradient_bytes(m, l, stage);

	if (replicas == 1)
		return 0;
	return hardware_collective_s(h, "allreduce", bytes, replicas, l->nodes < replicas ? l->nodes : replicas) /
	       (l->nodes > 1 ? fmin(1, h->rings / l->stages) : 1);
}

static void pdp_time(struct advise_cost *ret, const struct advise_model *m, const struct advise_layout *l,
		     const struct hardware *h)
{
	double forward_s = 0, backward_s = 0, comm_s = 0, update_s = 0, peer_s;

	for (int s = 0; s < l->stages; s++) {
		forward_s = fmax(forward_s, stage_seconds(m, l, s, true));
		backward_s = fmax(backward_s, stage_seconds(m, l, s, false));
		comm_s = fmax(comm_s, gradient_sum_seconds(m, l, h, s));
		update_s =
			fmax(update_s, advise_update_s(m) * stage_gradient_bytes(m, l, s) / advise_gradient_bytes(m));
	}
	/* A pipeline with more stages than a machine has ranks crosses machines. */
	peer_s = hardware_collective_s(h, "send", m->cross_bytes, 2, l->stages > l->ranks / l->nodes ? 2 : 1);
	ret->forward_s = l->micros * forward_s;
	ret->backward_s = l->micros * backward_s;
	ret->bubble_s = (l->stages - 1) * (forward_s + backward_s + 2 * peer_s);
	ret->optimizer_s = update_s;
	ret->comm_s = comm_s + 2 * l->micros * peer_s;
	ret->comm_exposed_s = advise_exposed(h, comm_s, backward_s, 0);
}

const struct advise advise_pdp = { "pdp", pdp_takes, pdp_state, pdp_time };
