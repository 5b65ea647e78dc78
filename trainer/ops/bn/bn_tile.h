/* SPDX-License-Identifier: Apache-2.0 */
/* bn_tile.h: loads, stores and masks of the batch norm loops, compiled once per instruction set by each.h (no include
 * guard on purpose). */

/* Compile-time variant of a loop over a tile; `full`: all lanes are valid. */
struct V(tile) {
	bool bf, full;
	int mask; /* MASK_* */
	bool join, write;
	bool past; /* stores bypass the caches */
};

VEC_INLINE vf V(bn_load)(const void *p, int64_t i, int64_t width, const struct V(tile) k)
{
	return k.full ? vload(p, i, k.bf) : vload_any(p, i, width, k.bf);
}

VEC_INLINE void V(bn_store)(void *p, int64_t i, vf v, int64_t width, const struct V(tile) k)
{
	if (k.full && k.past)
		vstore_past(p, i, v, k.bf);
	else if (k.full)
		vstore(p, i, v, k.bf);
	else
		vstore_any(p, i, v, width, k.bf);
}

/* The coefficients of one vector of channels. */
struct V(bn_coef) {
	vf scale, shift, mean;
};

VEC_INLINE struct V(bn_coef) V(bn_coef_at)(const struct bn_state *s, int64_t c)
{
	return (struct V(bn_coef)){ vload(s->scale, c, false), vload(s->shift, c, false), vload(s->mean, c, false) };
}

/* The gradient in front of the activation: dy [+ dy2], zero where the output was not positive. n: number of channels
 * from i on. */
VEC_INLINE vf V(bn_masked)(const struct bn_state *s, int64_t i, int64_t n, vf x, const struct V(bn_coef) * f,
			   const struct V(tile) k)
{
	vf g = V(bn_load)(s->dy, i, n, k);

	if (k.join)
		g += V(bn_load)(s->dy2, i, n, k);
	if (k.mask == MASK_FROM_Y)
		g = vkeep_gt(g, V(bn_load)(s->y_in, i, n, k), vset(0));
	else if (k.mask == MASK_FROM_X)
		g = vkeep_gt(g, x * f->scale + f->shift, vset(0));
	return g;
}
