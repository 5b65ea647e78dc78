/* SPDX-License-Identifier: Apache-2.0 */
/* xent_cpu.c: softmax cross-entropy of each row and its gradient. Threads split the rows; the losses are then added in
 * row order, so the sum does not depend on the number of threads. */
#ifndef CPU_PASS
#include <math.h>

#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/xent/xent.h"

struct xent_state {
	cpu_part_fn *loop;
	int64_t n, k;
	int parts, per_row; /* per_row: labels */
	double smoothing;
	/* set per run */
	const float *logits, *lse_in;
	const int32_t *labels;
	float *lse, *dlogits;
	double *row; /* [n][2] in the workspace: loss, number of logits that rank above the main label's */
	double scale, label_weight;
};

static struct xent_labels row_labels(const struct xent_state *s, int64_t row)
{
	return xent_labels_of(s->labels, row, s->per_row, s->label_weight);
}

#define CPU_BODY "trainer/ops/xent/xent_cpu.c"
#include "trainer/backends/cpu/each.h"

static int new_xent_state(const struct kernel_env *env, const struct node *n, cpu_part_fn *loop,
			  struct xent_state **ret, struct err *err)
{
	struct xent_state *s;
	int rc = cpu_want(n, n->in[0], DTYPE_F32, err);

	if (!rc)
		rc = cpu_want(n, n->in[1], DTYPE_I32, err);
	if (rc)
		return rc;
	s = mem_zalloc(sizeof(*s));
	s->loop = loop;
	s->n = n->in[0]->shape.dim[0];
	s->k = n->in[0]->shape.dim[1];
	s->per_row = n->in[1]->shape.ndim;
	s->parts = cpu_parts(env, s->n * s->k);
	s->smoothing = ((const struct xent_attr *)n->attr)->label_smoothing;
	*ret = s;
	return 0;
}

static int prepare_xent_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct xent_state *s;
	int rc = new_xent_state(env, n, CPU_PICK(env, xent_loop), &s, err);

	if (rc)
		return rc;
	n->workspace_bytes = (size_t)s->n * 2 * sizeof(double);
	*ret_state = s;
	return 0;
}

/* Runs the rows, then sums losses and counts in row order. */
static void run_xent_cpu(void *state, const struct kernel_args *args)
{
	struct xent_state s = *(const struct xent_state *)state;
	double *result = args->out[XENT_OUT_RESULT], *losses = args->out[XENT_OUT_LOSSES];

	s.logits = args->in[0];
	s.labels = args->in[1];
	s.label_weight = args->page->label_weight;
	s.lse = args->out[XENT_OUT_LSE];
	s.row = args->workspace;
	cpu_parallel(s.parts, s.loop, &s);
	for (int i = 0; i < XENT_RESULTS; i++)
		result[i] = 0;
	for (int64_t i = 0; i < s.n; i++) {
		const int32_t label = xent_main_label(row_labels(&s, i));
		float own;

		if (losses)
			losses[i] = label < 0 ? 0 : s.row[2 * i];
		if (label < 0)
			continue;
		result[XENT_COUNT] += 1;
		result[XENT_LOSS_SUM] += s.row[2 * i];
		own = s.logits[i * s.k + label];
		result[XENT_TOP1] += xent_hits(own, (int64_t)s.row[2 * i + 1], 1);
		result[XENT_TOP5] += xent_hits(own, (int64_t)s.row[2 * i + 1], 5);
	}
}

static int prepare_xent_grad_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct xent_state *s;
	int rc = new_xent_state(env, n, CPU_PICK(env, xent_grad_loop), &s, err);

	if (!rc)
		*ret_state = s;
	return rc;
}

static void run_xent_grad_cpu(void *state, const struct kernel_args *args)
{
	struct xent_state s = *(const struct xent_state *)state;

	s.logits = args->in[0];
	s.labels = args->in[1];
	s.label_weight = args->page->label_weight;
	s.lse_in = args->in[2];
	s.dlogits = args->out[0];
	s.scale = args->page->inv_count * args->page->loss_scale;
	cpu_parallel(s.parts, s.loop, &s);
}

extern const struct kernel xent_cpu, xent_grad_cpu;
const struct kernel xent_cpu = { .prepare = prepare_xent_cpu, .run = run_xent_cpu, .release = cpu_state_release };
const struct kernel xent_grad_cpu = { .prepare = prepare_xent_grad_cpu,
				      .run = run_xent_grad_cpu,
				      .release = cpu_state_release };

#else

/* Mask of the lanes within the n remaining elements of a row. */
VEC_INLINE vi V(xent_lanes)(int64_t n)
{
	return vlane() < (int)(n < LANES ? n : LANES);
}

static inline __attribute__((unused)) double V(xent_sum_exp)(const float *l, int64_t k, float most)
{
	double sum = 0;

	for (int64_t c = 0; c < k; c += LANES) {
		vf e = vexp(vload_any(l, c, k - c, false) - most);

		sum += (double)vsum((vf)((vi)e & V(xent_lanes)(k - c)));
	}
	return sum;
}

static inline __attribute__((unused)) float V(xent_max)(const float *l, int64_t k)
{
	vf most = vset(l[0]);

	for (int64_t c = 0; c < k; c += LANES)
		most = vmax(most, vblend(V(xent_lanes)(k - c), vload_any(l, c, k - c, false), most));
	return vmax_lane(most);
}

static inline __attribute__((unused)) void V(xent_row)(const struct xent_state *s, int64_t n)
{
	const float *l = s->logits + n * s->k;
	struct xent_labels labels = row_labels(s, n);
	int64_t label, before = 0;
	float own, most = V(xent_max)(l, s->k);
	double lse = (double)most + log(V(xent_sum_exp)(l, s->k, most)), sum = 0;

	if (labels.first < 0)
		labels.first = labels.second = 0; /* the row is ignored */
	label = xent_main_label(labels);
	own = l[label];
	for (int64_t j = 0; j < s->k; j++) {
		before += !(l[j] <= own) || (l[j] == own && j < label); /* xent_before, without widening */
		sum += (double)l[j];
	}
	s->lse[n] = (float)lse;
	s->row[2 * n] = lse - (1 - s->smoothing) * xent_label_logit(l[labels.first], l[labels.second], labels.weight) -
			s->smoothing * sum / (double)s->k;
	s->row[2 * n + 1] = (double)before;
}

static void V(xent_loop)(void *arg, int part, int parts)
{
	const struct xent_state *s = arg;
	struct cpu_range r = cpu_split(s->n, 1, part, parts);

	for (int64_t n = r.begin; n < r.end; n++)
		V(xent_row)(s, n);
}

/* Gradient of the logits; the labels' own entries are computed in f64. */
static void V(xent_grad_loop)(void *arg, int part, int parts)
{
	const struct xent_state *s = arg;
	struct cpu_range r = cpu_split(s->n, 1, part, parts);
	float scale = (float)s->scale, even = (float)(s->smoothing / (double)s->k);

	for (int64_t n = r.begin; n < r.end; n++) {
		const float *l = s->logits + n * s->k;
		float *d = s->dlogits + n * s->k;
		const struct xent_labels labels = row_labels(s, n);
		float own[2];

		if (labels.first < 0) {
			memset(d, 0, (size_t)s->k * sizeof(*d));
			continue;
		}
		own[0] = expf(l[labels.first] - s->lse_in[n]);
		own[1] = expf(l[labels.second] - s->lse_in[n]);
		for (int64_t c = 0; c < s->k; c += LANES) {
			vf softmax = vexp(vload_any(l, c, s->k - c, false) - s->lse_in[n]);

			vstore_any(d, c, (softmax - even) * scale, s->k - c, false);
		}
		for (int i = 0; i < s->per_row; i++) {
			const int32_t label = i ? labels.second : labels.first;
			const double share = (1 - s->smoothing) * xent_share(labels, label);

			d[label] = (float)(((double)own[i] - share - (double)even) * s->scale);
		}
	}
}

#endif
