/* SPDX-License-Identifier: Apache-2.0 */
/* attention.h: causal multi-head self-attention (Vaswani et al. 2017). Row r of qkv holds query, key and value of one
 * position, C numbers each; head h has columns [h*D, (h+1)*D), D = C / heads. Rows form sequences of `seq` positions.
 *   attention       in qkv [R,3C], places i32 [R]        out y [R,C], lse [R,heads] (master type)
 *   attention_grad  in dy [R,C], qkv, y, lse, places     out dqkv [R,3C]
 * A position sees itself and those before it: with `window` the last `window` ones alone, itself included; with
 * `places`, which may be NULL, those of its document alone, in which it is at this place, from 0. A place is one more
 * than that of the position before, or 0. With s(i,j) = q(i).k(j) / sqrt(D), or cap tanh(that / cap), for the j that i
 * sees: lse(i) = log sum exp s(i,j), p(i,j) = exp(s(i,j) - lse(i)), y(i) = sum p(i,j) m(i,j) v(j), m = dropout's mask /
 * (1 - p) (dropout.h; element ((h * seq + i) * seq + j) of its sample). No seq x seq matrix is stored: the backward
 * pass recomputes p from lse (Dao et al. 2022). */
#ifndef DPT_OPS_ATTENTION_H
#define DPT_OPS_ATTENTION_H

#include "trainer/graph/host_device.h"
#include "trainer/ops/dropout/dropout.h"

struct attention_attr {
	int64_t heads, seq;
	int64_t window;		     /* 0: none */
	double cap;		     /* of scores; 0: none */
	struct dropout_attr dropout; /* of the probabilities; p = 0: none */
};

/* The first position that i sees. places: of its sequence; NULL: one document. */
HOST_DEVICE_INLINE int64_t attention_begin(int64_t window, const int32_t *places, int64_t i)
{
	const int64_t document = places ? i - places[i] : 0, begin = window && i >= window ? i + 1 - window : 0;

	return begin > document ? begin : document;
}

/* places: NULL: none. */
struct tensor *attention_add(struct graph *g, struct tensor *qkv, struct tensor *places,
			     const struct attention_attr *attr, const char *name);

#endif
