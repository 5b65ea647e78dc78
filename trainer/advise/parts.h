/* parts.h: what the formulas of several strategies share. */
#ifndef DPT_ADVISE_PARTS_H
#define DPT_ADVISE_PARTS_H

#include "trainer/advise/advise.h"

double advise_params(const struct advise_model *m); /* elements, a tied table once */
double advise_turn_params(const struct advise_model *m); /* of what stands behind the blocks, a tied table too */
double advise_forward_s(const struct advise_model *m);
double advise_backward_s(const struct advise_model *m);
double advise_update_s(const struct advise_model *m);

/* Activations, workspace and inputs of a rank that computes the whole model; with casts: it casts whole parameters. */
void advise_activations(struct advise_cost *ret, const struct advise_model *m, bool casts);

/* Bytes that each of n ranks sends: a sum sends everything twice, the others once. */
double advise_ring(double bytes, double ranks, bool sum);

/* Forward, backward and optimiser of a rank that computes the whole model, micros times. */
void advise_compute(struct advise_cost *ret, const struct advise_model *m, const struct advise_layout *l);

/* What stays of comm_s when hidden_s of other work lies beside it, and tail_s of it comes behind all of that. */
double advise_exposed(const struct hardware *h, double comm_s, double hidden_s, double tail_s);

#endif
