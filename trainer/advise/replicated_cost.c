/* SPDX-License-Identifier: Apache-2.0 */
/* replicated_cost.c: strategies whose ranks or devices hold the whole model: single, dp, ddp. */
#include <math.h>

#include "trainer/advise/advise.h"

/* ---- single ----
 *
 * One rank holds everything and does not communicate. Gradients grow while activations shrink, so the larger of the two
 * moments is the peak. */

static bool single_takes(const struct advise_model *m, const struct advise_layout *l)
{
	(void)m;
	return l->ranks == 1;
}

static void single_state(struct advise_cost *ret, const struct advise_model *m, const struct advise_layout *l,
			 int stage)
{
	const double grads = advise_gradient_bytes(m), turn = advise_turn_gradient_bytes(m);
	double kept;

	(void)stage;
	advise_activations(ret, m, true);
	kept = ret->bytes[PLAN_ACTIVATIONS];
	ret->bytes[PLAN_PARAMETERS] = advise_stored_bytes(m);
	ret->bytes[PLAN_OPTIMIZER] = m->moments * grads;
	ret->stays_bytes = advise_turn_stored_bytes(m) + m->block.stored_bytes;
	if (l->micros > 1) { /* sums exist in addition to new gradients */
		ret->bytes[PLAN_GRADIENTS] = grads + turn;
	} else if (kept + turn >= grads + m->stage_bytes) {
		ret->bytes[PLAN_GRADIENTS] = turn;
	} else {
		ret->bytes[PLAN_GRADIENTS] = grads;
		ret->bytes[PLAN_ACTIVATIONS] = m->stage_bytes;
	}
}

static void single_time(struct advise_cost *ret, const struct advise_model *m, const struct advise_layout *l,
			const struct hardware *h)
{
	(void)h;
	advise_compute(ret, m, l);
}

const struct advise advise_single = { "single", single_takes, single_state, single_time };

/* ---- dp ----
 *
 * One process with several devices, each with a part of the batch. Device 0 has the masters, the sums of gradients and
 * the moments. A device has a copy of the parameters while it computes (or of those that it casts, while it casts
 * them), and the copy for the next device is made meanwhile. Nothing leaves the process. On a host the devices share
 * its cores, which their kernels use in turn. */

static bool dp_takes(const struct advise_model *m, const struct advise_layout *l)
{
	(void)m;
	return l->ranks == 1 && l->devices > 1;
}

static void dp_state(struct advise_cost *ret, const struct advise_model *m, const struct advise_layout *l, int stage)
{
	const double grads = advise_gradient_bytes(m);

	(void)stage;
	advise_activations(ret, m, true);
	ret->bytes[PLAN_INPUTS] *= l->devices;
	ret->bytes[PLAN_PARAMETERS] = 3 * advise_stored_bytes(m) - advise_copied_bytes(m);
	ret->bytes[PLAN_GRADIENTS] = grads + advise_turn_gradient_bytes(m);
	ret->bytes[PLAN_OPTIMIZER] = m->moments * grads;
	ret->stays_bytes = advise_turn_stored_bytes(m) + m->block.stored_bytes;
}

static void dp_time(struct advise_cost *ret, const struct advise_model *m, const struct advise_layout *l,
		    const struct hardware *h)
{
	(void)h;
	advise_compute(ret, m, l);
	ret->forward_s *= l->devices;
	ret->backward_s *= l->devices;
}

const struct advise advise_dp = { "dp", dp_takes, dp_state, dp_time };

/* ---- ddp ----
 *
 * Every rank holds everything. Gradients are in buckets that are summed one after the other during the backward pass,
 * each after its last gradient. Only the end of the sums is exposed. */

#define FIRST_BUCKET_BYTES 1048576.0 /* trainer/strategies/ddp.c */

static bool ddp_takes(const struct advise_model *m, const struct advise_layout *l)
{
	(void)m;
	return l->ranks > 1;
}

static void ddp_state(struct advise_cost *ret, const struct advise_model *m, const struct advise_layout *l, int stage)
{
	const double grads = advise_gradient_bytes(m);

	(void)stage;
	advise_activations(ret, m, true);
	ret->bytes[PLAN_PARAMETERS] = advise_stored_bytes(m);
	ret->bytes[PLAN_GRADIENTS] = grads;
	if (l->micros > 1) /* a new gradient in addition to its sum; that of a tied embedding until the end */
		ret->bytes[PLAN_GRADIENTS] = grads + m->master_bytes * (m->tied_trained + m->back.largest);
	ret->bytes[PLAN_OPTIMIZER] = m->moments * grads;
	ret->stays_bytes = advise_turn_stored_bytes(m) + m->block.stored_bytes;
	ret->sent[ADVISE_ALLREDUCE] = advise_ring(grads, l->ranks, true);
}

/* Simulates how buckets fill during a backward pass (trainer/strategies/ddp.c). */
struct bucket_fill {
	const struct advise_layout *l;
	const struct hardware *h;
	double bytes, cap; /* size of the current bucket, and its limit */
	double now_s;	   /* time of the last gradient */
	double sent_s;	   /* when all earlier buckets are summed */
	double comm_s;	   /* total time of the sums */
};

static void send_bucket(struct bucket_fill *f)
{
	const double s = hardware_collective_s(f->h, "allreduce", f->bytes, f->l->ranks, f->l->nodes);

	f->sent_s = fmax(f->sent_s, f->now_s) + s;
	f->comm_s += s;
	f->bytes = 0;
	f->cap = f->l->bucket_bytes;
}

/* Adds the gradients of a part, assumed to have nearly the size of the largest one. */
static void fill_ddp_buckets(struct bucket_fill *f, const struct advise_model *m, const struct advise_part *part)
{
	const int n = part->largest > 0 ? (int)fmax(1, round(part->trained / part->largest)) : 1;
	const double each = m->master_bytes * part->trained / n;

	for (int i = 0; i < n; i++) {
		if (f->bytes > 0 && f->bytes + each > f->cap)
			send_bucket(f);
		f->bytes += each;
		f->now_s += part->backward_s / n;
	}
}

static void ddp_time(struct advise_cost *ret, const struct advise_model *m, const struct advise_layout *l,
		     const struct hardware *h)
{
	struct bucket_fill f = { .l = l, .h = h, .cap = fmin(FIRST_BUCKET_BYTES, l->bucket_bytes) };

	advise_compute(ret, m, l);
	fill_ddp_buckets(&f, m, &m->back);
	for (int i = 0; i < m->blocks; i++)
		fill_ddp_buckets(&f, m, &m->block);
	fill_ddp_buckets(&f, m, &m->front);
	send_bucket(&f);
	ret->comm_s = f.comm_s;
	ret->comm_exposed_s = f.comm_s - h->overlap * (f.comm_s - fmax(0, f.sent_s - f.now_s));
}

const struct advise advise_ddp = { "ddp", ddp_takes, ddp_state, ddp_time };
