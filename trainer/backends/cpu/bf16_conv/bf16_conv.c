/* SPDX-License-Identifier: Apache-2.0 */
/* bf16_conv.c: selects the convolutions that this code computes and the pass for each, and packs f32 weights
 * [k][r][s][c] for block products. The packed order is panel of 32 results, phase, tap, step of 32 terms. A step is 16
 * pairs of terms of 32 results in bf16. Missing terms and results are zero. */
#ifndef CPU_PASS
#include "trainer/backends/cpu/bf16_conv/bf16_plan.h"
#include "trainer/backends/cpu/vec.h"

#define OFFSET_MOST (INT64_C(1) << 30) /* bytes of packed weights of a panel, and of a chunk */

struct weight_pack {
	const struct conv_plan *plan;
	const float *from;
	char *to;
};

/* One step of a tap, starting at term `first` of it. */
struct weight_step {
	const struct conv_phase *phase;
	int64_t tap, first;
};

/* The row of the kernel and the column at which the terms of a tap start. */
struct weight_tap {
	int64_t r, s;
};

static struct weight_tap find_weight_tap(const struct conv_plan *p, const struct weight_step *w)
{
	const struct phase_axis *y = &w->phase->y, *x = &w->phase->x;
	const int64_t across = p->packed_rows ? 1 : x->taps, i = w->tap / across, j = w->tap % across;

	return (struct weight_tap){ y->tap_first + i * y->tap_step, x->tap_first + j * x->tap_step };
}

/* Forward: returns the terms of result k, which are contiguous. */
static const float *find_result_terms(const struct weight_pack *w, const struct weight_step *s, int64_t k)
{
	const struct conv_plan *p = w->plan;
	const struct weight_tap t = find_weight_tap(p, s);

	return w->from + ((k * p->s.kernel + t.r) * p->s.kernel + t.s) * p->d + s->first;
}

/* Data gradient: returns term i of all results, which are contiguous; NULL after the last one. */
static const float *find_term_results(const struct weight_pack *w, const struct weight_step *s, int64_t i)
{
	const struct conv_plan *p = w->plan;
	const int64_t term = s->first + i;
	struct weight_tap t = find_weight_tap(p, s);

	if (term >= p->terms)
		return NULL;
	t.s += term / p->d * s->phase->x.tap_step;
	return w->from + ((term % p->d * p->s.kernel + t.r) * p->s.kernel + t.s) * p->e;
}

#define CPU_LANES 16
#define CPU_BODY "trainer/backends/cpu/bf16_conv/bf16_conv.c"
#include "trainer/backends/cpu/each.h"

void bf16_conv_pack(const struct bf16_conv *c, const float *krsc, void *packed)
{
	static cpu_part_fn *const loops[] = CPU_TABLE(pack_weight_panels);
	struct conv_plan p;

	bf16_forward_plan(&p, c);
	cpu_parallel((int)min_int64(c->threads, plan_panels(p.e)), loops[c->module->isa],
		     &(struct weight_pack){ &p, krsc, packed });
}

bool bf16_conv_takes(const struct cpu_module *m, enum bf16_engine engine, const struct dnn_conv_spec *s)
{
	const int64_t deep = s->c > s->k ? s->c : s->k;

	return block_has(m, engine) && s->bf16 && s->stride <= STRIDE_MOST && s->kernel <= KERNEL_MOST &&
	       s->pad < s->kernel && s->p > 0 && s->q > 0 && deep * s->kernel * s->kernel * STEP_BYTES < OFFSET_MOST;
}

size_t bf16_conv_packed_bytes(const struct bf16_conv *c)
{
	struct conv_plan p;

	bf16_forward_plan(&p, c);
	return plan_weight_bytes(&p);
}

size_t bf16_conv_workspace_bytes(const struct bf16_conv *c)
{
	return c->spec.pass == DNN_WGRAD ? bf16_wgrad_workspace_bytes(c) : bf16_forward_workspace_bytes(c);
}

void bf16_conv_run(const struct bf16_conv *c, const struct dnn_conv_args *args)
{
	if (c->spec.pass == DNN_WGRAD)
		bf16_wgrad_run(c, args);
	else
		bf16_forward_run(c, args);
}

#else

/* Packs 32 terms of each of 16 results as 16 pairs of 16 results. */
VEC_INLINE void V(pack_result_terms)(const struct weight_pack *w, const struct weight_step *s, int64_t k, v16 *pairs)
{
	const int64_t left = min_int64(BLOCK_TERMS, w->plan->terms - s->first);

	for (int i = 0; i < LANES; i++) {
		v16h half[2] = { { 0 }, { 0 } };

		if (k + i < w->plan->e) {
			const float *from = find_result_terms(w, s, k + i);

			half[0] = vto_bf16(vload_any(from, 0, left, false));
			if (left > LANES)
				half[1] = vto_bf16(vload_any(from, LANES, left - LANES, false));
		}
		memcpy(&pairs[i], half, sizeof(half));
	}
	vturn(pairs);
}

VEC_INLINE v16u V(load_term)(const float *from, int64_t first, int64_t e)
{
	if (!from || first >= e)
		return (v16u){ 0 };
	return __builtin_convertvector(vto_bf16(vload_any(from, first, e - first, false)), v16u);
}

/* Packs the same pairs when each term has its own row of results; starts at result `first`. */
VEC_INLINE void V(pack_term_results)(const struct weight_pack *w, const struct weight_step *s, int64_t first,
				     v16 *pairs)
{
	const int64_t e = w->plan->e;

	for (int i = 0; i < LANES; i++) {
		const v16u low = V(load_term)(find_term_results(w, s, 2 * i), first, e);
		const v16u high = V(load_term)(find_term_results(w, s, 2 * i + 1), first, e);

		pairs[i] = (v16)(low | high << 16);
	}
}

static void V(pack_weight_step)(const struct weight_pack *w, const struct weight_step *s, int64_t first, char *to)
{
	for (int j = 0; j < 2; j++, first += LANES) {
		v16 pairs[LANES];

		if (w->plan->s.pass == DNN_DGRAD)
			V(pack_term_results)(w, s, first, pairs);
		else
			V(pack_result_terms)(w, s, first, pairs);
		for (int i = 0; i < LANES; i++)
			memcpy(to + i * 2 * BLOCK_LINE + j * BLOCK_LINE, &pairs[i], BLOCK_LINE);
	}
}

static void V(pack_weight_panels)(void *arg, int part, int parts)
{
	const struct weight_pack *w = arg;
	const struct conv_plan *p = w->plan;
	struct cpu_range r = cpu_split(plan_panels(p->e), 1, part, parts);
	char *to = w->to + r.begin * p->steps * STEP_BYTES;

	for (int64_t panel = r.begin; panel < r.end; panel++)
		for (int i = 0; i < p->phases; i++)
			for (int64_t k = 0; k < p->phase[i].steps; k++, to += STEP_BYTES) {
				const int64_t each = p->cell / BLOCK_TERMS;
				const struct weight_step s = { &p->phase[i], k / each, k % each * BLOCK_TERMS };

				V(pack_weight_step)(w, &s, panel * BLOCK_PANEL, to);
			}
}

#endif
