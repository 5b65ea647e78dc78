/* SPDX-License-Identifier: Apache-2.0 */
/* fsdp_cost.c: ranks hold shards of moments (stage 1), also of gradients (2), also of parameters (3). Units are the
 * parts of the model. At stage 3 the parameters of the current part and of the next ones are gathered, and whole
 * gradients of at most two parts exist. */
#include "trainer/advise/advise.h"

#include <math.h>

static bool fsdp_takes(const struct advise_model *m, const struct advise_layout *l)
{
	(void)m;
	return l->ranks > 1 && l->ranks % l->shard_degree == 0;
}

/* A step visits the parts in this order: forward 0 … blocks + 1, then back to block 1. The back is visited once for
 * both passes; the embeddings in front are not read in the backward pass. */
static int count_visits(const struct advise_model *m)
{
	return 2 * m->blocks + 2;
}

static int visited_part(const struct advise_model *m, int visit)
{
	return visit <= m->blocks + 1 ? visit : 2 * m->blocks + 2 - visit;
}

static double visit_read_bytes(const struct advise_model *m, int visit)
{
	const int part = visit < count_visits(m) ? visited_part(m, visit) : -1;

	if (part < 0)
		return 0;
	if (part == 0)
		return m->front.read_bytes;
	if (part <= m->blocks)
		return m->block.read_bytes;
	return m->back.read_bytes; /* a tied table's too */
}

/* Returns the bytes of the gradients made at a visit of the backward pass. */
static double visit_gradient_bytes(const struct advise_model *m, int visit)
{
	if (visit < m->blocks + 1)
		return 0;
	if (visit == m->blocks + 1)
		return m->master_bytes * m->back.trained;
	return m->master_bytes * (visit < count_visits(m) ? m->block.trained : m->front.trained);
}

/* The back's gradient of a tied embedding is in the bucket of the embedding; at stage 3 in separate memory. */
static double tied_bucket_bytes(const struct advise_model *m, const struct advise_layout *l)
{
	return l->zero_stage < 3 ? m->master_bytes * m->tied_trained : 0;
}

/* Buckets of a visit and of the one before, which are being reduced, and from its first use that of a tied
 * embedding. */
static double visit_bucket_bytes(const struct advise_model *m, const struct advise_layout *l, int visit)
{
	const bool waits = visit > m->blocks && visit < count_visits(m);

	return visit_gradient_bytes(m, visit) + visit_gradient_bytes(m, visit - 1) +
	       (waits ? tied_bucket_bytes(m, l) : 0);
}

/* Finds the peak of gathered parameters and buckets together. */
static void find_gather_peak(const struct advise_model *m, const struct advise_layout *l, double *ret_gathered,
			     double *ret_buckets)
{
	double most = -1;

	for (int v = 0; v <= count_visits(m); v++) {
		double gathered = 0, buckets = 0;

		for (int k = v; k <= v + l->prefetch; k++)
			gathered += l->zero_stage == 3 ? visit_read_bytes(m, k) : 0;
		if (l->zero_stage >= 2)
			buckets = visit_bucket_bytes(m, l, v);
		if (gathered + buckets <= most)
			continue;
		most = gathered + buckets;
		*ret_gathered = gathered;
		*ret_buckets = buckets;
	}
}

static double model_read_bytes(const struct advise_model *m)
{
	return m->front.read_bytes + m->blocks * m->block.read_bytes + m->back.read_bytes;
}

/* At stages 1 and 2 a tied embedding is read in one type and gathered once. */
static double whole_gathered_bytes(const struct advise_model *m)
{
	const double bytes = model_read_bytes(m);

	return m->tied_bytes > 0 ? bytes - m->back.read_bytes + m->back.stored_bytes : bytes;
}

/* Bytes by category, and bytes sent. */
static void fsdp_state(struct advise_cost *ret, const struct advise_model *m, const struct advise_layout *l, int stage)
{
	const double grads = advise_gradient_bytes(m), s = l->shard_degree, copies = l->ranks / s;
	const bool whole = l->zero_stage == 1 || (l->micros > 1 && !l->sync_each_batch);
	const double times = l->zero_stage >= 2 && l->sync_each_batch ? l->micros : 1;

	(void)stage;
	advise_activations(ret, m, false);
	find_gather_peak(m, l, &ret->bytes[PLAN_GATHERED], &ret->bytes[PLAN_BUCKETS]);
	ret->bytes[PLAN_OPTIMIZER] = m->moments * grads / s;
	ret->stays_bytes = 2 * m->block.stored_bytes / s;
	ret->bytes[PLAN_SHARDS] = (l->zero_stage == 3 ? advise_stored_bytes(m) : advise_copied_bytes(m)) / s;
	if (l->zero_stage < 3)
		ret->bytes[PLAN_GATHERED] = whole_gathered_bytes(m);
	ret->bytes[PLAN_GRADIENTS] = (whole ? grads : 0) + m->master_bytes * m->tied_trained;
	if (!whole || l->micros == 1) /* with a sum, it exists in addition to the sum until the end */
		ret->bytes[PLAN_GRADIENTS] -= tied_bucket_bytes(m, l);
	if (!whole && l->micros > 1) /* sums of the rank's own shard */
		ret->bytes[PLAN_GRADIENTS] += grads / s;
	if (whole)
		ret->bytes[PLAN_BUCKETS] = 0;
	else if (l->micros == 1) /* all blocks but the two with activations and the one that is being reduced */
		ret->late_bytes = m->master_bytes * (m->back.trained + fmax(0, m->blocks - 3) * m->block.trained) / s;
	ret->sent[ADVISE_REDUCE_SCATTER] = times * advise_ring(grads, s, false);
	ret->sent[ADVISE_ALL_GATHER] = l->zero_stage < 3 ? advise_ring(whole_gathered_bytes(m), s, false)
		: l->micros * advise_ring(model_read_bytes(m) + m->blocks * m->block.read_bytes, s, false);
	ret->sent[ADVISE_ALLREDUCE] = times * advise_ring(grads / s, copies, true);
}

/* Parts are gathered one by one. */
static double gather_seconds(const struct hardware *h, const struct advise_layout *l, double bytes)
{
	return bytes > 0 ? hardware_collective_s(h, "all_gather", bytes, l->shard_degree, l->nodes) : 0;
}

static double scatter_seconds(const struct hardware *h, const struct advise_layout *l, double bytes)
{
	return bytes > 0 ? hardware_collective_s(h, "reduce_scatter", bytes, l->shard_degree, l->nodes) : 0;
}

/* Gathers and scatters use one ring each, at the same time. */
static double parallel_ring_seconds(const struct hardware *h, const struct advise_layout *l, double gathers_s,
				    double scatters_s)
{
	const double rings = fmax(1, l->nodes > 1 ? h->between.rings : h->within.rings);

	return fmax(fmax(gathers_s, scatters_s), (gathers_s + scatters_s) / rings);
}

/* Seconds of gathers and scatters, and the part that computation does not hide. */
static void fsdp_time(struct advise_cost *ret, const struct advise_model *m, const struct advise_layout *l,
		      const struct hardware *h)
{
	const double blocks_s = m->blocks * gather_seconds(h, l, m->block.read_bytes);
	const double first_s = gather_seconds(h, l, m->front.read_bytes),
		     last_s = gather_seconds(h, l, m->back.read_bytes);
	const double sums_s = m->blocks * scatter_seconds(h, l, m->master_bytes * m->block.trained) +
			      scatter_seconds(h, l, m->master_bytes * m->back.trained);
	const double tail_s = scatter_seconds(h, l, m->master_bytes * m->front.trained);
	const double gathers = l->zero_stage == 3 ? l->micros : 1, scatters = l->sync_each_batch ? l->micros : 1;
	const double again_s = l->zero_stage == 3 ? gathers * blocks_s : 0; /* the backward pass gathers again */
	double forward_s = gathers * (first_s + blocks_s + last_s);
	double backward_s = parallel_ring_seconds(h, l, again_s, scatters * (sums_s + tail_s));

	advise_compute(ret, m, l);
	if (l->ranks > l->shard_degree)
		backward_s += hardware_collective_s(h, "allreduce", advise_gradient_bytes(m) / l->shard_degree,
						    l->ranks / l->shard_degree, l->nodes);
	ret->optimizer_s /= l->shard_degree;
	ret->comm_s = forward_s + backward_s;
	ret->comm_exposed_s = advise_exposed(h, forward_s, gathers * advise_forward_s(m), gathers * first_s) +
			      advise_exposed(h, backward_s, scatters * advise_backward_s(m), scatters * tail_s);
}

const struct advise advise_fsdp = { "fsdp", fsdp_takes, fsdp_state, fsdp_time };
