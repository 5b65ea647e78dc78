/* SPDX-License-Identifier: Apache-2.0 */
/* attention.h: causal multi-head self-attention (Vaswani et al. 2017). Row r of qkv holds query, key and value of one
 * position, C numbers each; head h has columns [h*D, (h+1)*D), D = C / heads. Rows form sequences of `seq` positions.
 *   attention       in qkv [R,3C]                out y [R,C], lse [R,heads] (master type)
 *   attention_grad  in dy [R,C], qkv, y, lse     out dqkv [R,3C]
 * With s(i,j) = q(i).k(j) / sqrt(D) for j <= i: lse(i) = log sum exp s(i,j), p(i,j) = exp(s(i,j) - lse(i)), y(i) = sum
 * p(i,j) m(i,j) v(j), m = dropout's mask / (1 - p) (dropout.h; element ((h * seq + i) * seq + j) of its sample). No seq
 * x seq matrix is stored: the backward pass recomputes p from lse (Dao et al. 2022). */
#ifndef DPT_OPS_ATTENTION_H
#define DPT_OPS_ATTENTION_H

#include "trainer/ops/dropout/dropout.h"

struct attention_attr {
	int64_t heads, seq;
	struct dropout_attr dropout; /* of the probabilities; p = 0: none */
};

struct tensor *attention_add(struct graph *g, struct tensor *qkv, const struct attention_attr *attr, const char *name);

#endif
