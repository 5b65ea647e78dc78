/* SPDX-License-Identifier: Apache-2.0 */
/* rope.h: makes the operand of trainer/ops/attention from queries, keys and values: rotates queries and keys by their
 * position (Su et al. 2021), scales queries, and repeats each key and value head for the queries that share it.
 *   rope       in q [R,H*D], k [R,K*D], v [R,K*D], first i32 [1]      out qkv [R,3*H*D]
 *   rope_grad  in dqkv [R,3*H*D]                                      out dq, dk, dv, as q, k, v
 * Without k and v, q is [R,(H+2K)*D] and holds all three side by side; dq likewise. Row r is position first + r % seq
 * (without `first`: from 0). Of each head the first `rotary` channels are rotated: channel i and i + rotary/2 by the
 * angle position * frequency[i], and multiplied by `factor`; the others are copied. */
#ifndef DPT_OPS_ROPE_H
#define DPT_OPS_ROPE_H

#include "trainer/graph/graph.h"

#define ROPE_PAIRS_MAX 256

struct rope_attr {
	int64_t heads, shared, d; /* H, K, D; K divides H */
	int64_t seq, rotary;	  /* rotary: even, 0: no rotation */
	double query_scale, factor;
	double frequency[ROPE_PAIRS_MAX]; /* radians per position */
};

/* operands: q, k, v, first; all but q may be NULL. Returns qkv. */
struct tensor *rope_add(struct graph *g, struct tensor *const operands[4], const struct rope_attr *attr,
			const char *name);

/* A copy of heads: `times` heads in a row, each the sum of the `n` heads from element `from` on of a row of tensor
 * `operand`. Both directions of the op are three or four of these a row. */
struct rope_copy {
	int source, target;	    /* 0 to 2: q, k, v; of the joined side all are 0 */
	int64_t from, to, n, times; /* from, to: first channel; n, times: heads */
	int64_t count;		    /* repetitions, of n heads of the source and `times` of the target */
	bool turns;
	double scale;
};

/* Writes the copies of the forward (back: of the backward) direction. joined: q holds all three. */
static inline void rope_copies(const struct rope_attr *a, bool back, bool joined, struct rope_copy ret[3])
{
	const int64_t group = a->heads / a->shared;

	for (int i = 0; i < 3; i++) {
		const int64_t apart = !joined || i == 0 ? 0 : (a->heads + (i - 1) * a->shared) * a->d;
		const int64_t together = i * a->heads * a->d, many = i ? group : 1;

		ret[i] = (struct rope_copy){ .source = back || joined ? 0 : i,
					     .target = back && !joined ? i : 0,
					     .from = back ? together : apart,
					     .to = back ? apart : together,
					     .n = back ? many : 1,
					     .times = back ? 1 : many,
					     .count = i ? a->shared : a->heads,
					     .turns = i < 2 && a->rotary,
					     .scale = i ? 1 : a->query_scale };
	}
}

#endif
