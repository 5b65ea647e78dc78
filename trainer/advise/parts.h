/* parts.h: helpers for the formulas of the strategies. */
#ifndef DPT_ADVISE_PARTS_H
#define DPT_ADVISE_PARTS_H

#include "trainer/advise/advise.h"

double advise_params(const struct advise_model *m); /* elements, a tied embedding once */
double advise_turn_params(const struct advise_model *m); /* elements after the blocks, including a tied embedding */
double advise_forward_s(const struct advise_model *m);
double advise_backward_s(const struct advise_model *m);
double advise_update_s(const struct advise_model *m);

/* Fills activations, workspace and inputs of a rank that computes the whole model; casts: it casts whole parameters. */
void advise_activations(struct advise_cost *ret, const struct advise_model *m, bool casts);

/* Returns the bytes that each rank sends in a ring: a sum sends everything twice, other collectives once. */
double advise_ring(double bytes, double ranks, bool sum);

/* Fills the seconds of forward, backward and optimiser of a rank that computes the whole model, micros times. */
void advise_compute(struct advise_cost *ret, const struct advise_model *m, const struct advise_layout *l);

/* Returns the exposed part of comm_s seconds if they overlap hidden_s of other work, and tail_s of them come after
 * it. */
double advise_exposed(const struct hardware *h, double comm_s, double hidden_s, double tail_s);

#endif
