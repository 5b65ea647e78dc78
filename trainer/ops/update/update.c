/* SPDX-License-Identifier: Apache-2.0 */
/* update.c: see update.h. */
#include "trainer/ops/update/update.h"

#include <string.h>

#include "trainer/ops/norm/norm.h"
#include "trainer/ops/ops.h"
#include "trainer/ops/step_guard/step_guard.h"

#define UPDATE_INPUTS_MAX (UPDATE_MOMENTS_MAX + 5)

static const struct {
	const char *name;
	int moments, sums;
	const char *moment[UPDATE_MOMENTS_MAX];
} rules[UPDATE_RULES] = {
#define RULE(name, moments, sums, ...) { #name, moments, sums, { __VA_ARGS__ } },
	UPDATE_RULE_LIST(RULE)
#undef RULE
};

#define OPTIMIZER(name, ...) _Static_assert((int)UPDATE_##name == (int)OPTIMIZER_##name, "the order of optimizers.def");
#include "trainer/optimizers/optimizers.def"
#undef OPTIMIZER

/* Tests whether the optimiser of a rule has an option. */
static bool rule_takes(enum update_rule rule, enum optimizer_option option)
{
	static const unsigned takes[OPTIMIZER_COUNT] = {
#define OPTIMIZER(name, takes, ...) takes,
#include "trainer/optimizers/optimizers.def"
#undef OPTIMIZER
	};

	return takes[rule == UPDATE_lamb_step ? UPDATE_lamb : rule] & option;
}

/* The operands of a node that differ between rules. */
struct update_operands {
	struct tensor *p, *g, *out; /* out: NULL for a new tensor */
	struct tensor *step;
	bool adapts;
};

/* Appends one node; NULL once the graph failed. */
static struct node *add_update_node(struct graph *g, const struct update_operands *o, const struct update_attr *attr)
{
	const bool keeps = !rule_takes(attr->rule, MOMENTUM) || attr->o.momentum != 0;
	struct tensor *in[UPDATE_INPUTS_MAX] = { o->p, o->g }, *out[1 + UPDATE_MOMENTS_MAX] = { o->out };
	int n = 2;

	for (int i = 0; i < rules[attr->rule].moments; i++)
		out[1 + i] = in[n++] = keeps ? op_moment(g, o->p, rules[attr->rule].moment[i]) : NULL;
	in[n++] = o->step;
	for (int i = 0; i < rules[attr->rule].sums; i++)
		in[n++] = o->adapts ? norm_sumsq(g, i ? o->g : o->p) : NULL;
	return graph_node(g, &(struct node_spec){ .op = &op_update,
						  .name = graph_printf(g, "%s.%s", o->p->name, rules[attr->rule].name),
						  .in = in,
						  .out = out,
						  .n_in = n,
						  .n_out = 1 + rules[attr->rule].moments,
						  NODE_ATTR(*attr) });
}

void update_add(struct graph *g, struct tensor *p, struct tensor *step, const struct update_attr *attr, bool adapts)
{
	struct update_operands o = { .p = p, .g = p->grad, .out = p, .step = step, .adapts = adapts };

	if (attr->rule == UPDATE_lamb) {
		struct update_attr first = { UPDATE_lamb_step, attr->o };
		struct node *n;

		o.out = NULL;
		n = add_update_node(g, &o, &first);
		if (!n)
			return;
		o.g = n->out[0];
		o.g->shard = p->shard;
		o.out = p;
	}
	add_update_node(g, &o, attr);
}

static int update_shape(struct graph *g, struct node *n)
{
	const struct tensor *p = n->in[0];
	bool ok = shape_equal(&p->shape, &n->in[1]->shape) && (!n->out[0] || n->out[0] == p);

	for (int i = 1; i < n->n_out; i++)
		ok = ok && n->out[i] == n->in[i + 1] && (!n->out[i] || shape_equal(&p->shape, &n->out[i]->shape));
	if (graph_expect(g, n, ok, "parameter, gradient and moments differ in shape"))
		return g->err.code;
	return n->out[0] ? 0 : graph_out(g, n, 0, TENSOR_TYPE(p->dtype, p->shape), "");
}

static int find_updated_input(const struct node *n, int out)
{
	(void)n;
	return out == 0 ? 0 : out + 1;
}

static void dump_update(const struct node *n, struct buf *out)
{
	const struct update_attr *a = n->attr;

	if (a->rule == UPDATE_lamb) /* lamb_step has its options */
		return;
	if (rule_takes(a->rule, BETAS))
		buf_addf(out, " betas=%g,%g", a->o.beta1, a->o.beta2);
	if (rule_takes(a->rule, EPS))
		buf_addf(out, " eps=%g", a->o.eps);
	if (rule_takes(a->rule, MOMENTUM))
		buf_addf(out, " momentum=%g", a->o.momentum);
	buf_addf(out, " weight_decay=%g", a->o.weight_decay);
	if (rule_takes(a->rule, TRUST) && n->in[n->n_in - 1])
		buf_addf(out, " trust=%g", a->o.trust);
	if (rule_takes(a->rule, NESTEROV) && a->o.nesterov)
		buf_adds(out, " nesterov");
}

const struct op op_update = {
	.name = "update",
	.id = OP_update,
	.shape = update_shape,
	.dtype = op_dtype_keep,
	.inplace = find_updated_input,
	.dump = dump_update,
};

/* ---- ref ----
 * The formulas of update.h: each takes p, d and the moments of one element, and returns the element of output 0. */

struct ref_update {
	const struct optimizer_attr *o;
	double rate;   /* lr times the ratio */
	double c1, c2; /* 1 - b1^t, 1 - b2^t */
	bool keeps;    /* has moments */
};

static double compute_sgd(const struct ref_update *u, double p, double d, double *m)
{
	d += u->o->weight_decay * p;
	if (u->keeps) {
		m[0] = u->o->momentum * m[0] + d;
		d = u->o->nesterov ? d + u->o->momentum * m[0] : m[0];
	}
	return p - u->rate * d;
}

static double compute_adam_step(const struct ref_update *u, double p, double d, double *m)
{
	m[0] += (1 - u->o->beta1) * (d - m[0]);
	m[1] = u->o->beta2 * m[1] + (1 - u->o->beta2) * d * d;
	return p - u->rate / u->c1 * m[0] / (sqrt(m[1]) / sqrt(u->c2) + u->o->eps);
}

static double compute_adamw(const struct ref_update *u, double p, double d, double *m)
{
	return compute_adam_step(u, p - u->rate * u->o->weight_decay * p, d, m);
}

static double compute_adam(const struct ref_update *u, double p, double d, double *m)
{
	return compute_adam_step(u, p, d + u->o->weight_decay * p, m);
}

static double compute_lars(const struct ref_update *u, double p, double d, double *m)
{
	d = u->rate * (d + u->o->weight_decay * p);
	if (u->keeps)
		d = m[0] = u->o->momentum * m[0] + d;
	return p - d;
}

static double compute_lamb_step(const struct ref_update *u, double p, double d, double *m)
{
	m[0] = u->o->beta1 * m[0] + (1 - u->o->beta1) * d;
	m[1] = u->o->beta2 * m[1] + (1 - u->o->beta2) * d * d;
	return m[0] / u->c1 / (sqrt(m[1] / u->c2) + u->o->eps) + u->o->weight_decay * p;
}

static double compute_lamb(const struct ref_update *u, double p, double d, double *m)
{
	(void)m;
	return p - u->rate * d;
}

static double (*const formulas[UPDATE_RULES])(const struct ref_update *u, double p, double d, double *m) = {
#define RULE(name, ...) compute_##name,
	UPDATE_RULE_LIST(RULE)
#undef RULE
};

/* Applies the formula of the rule to every element. */
static void run_update_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const struct update_attr *a = n->attr;
	const int moments = n->n_out - 1, at = update_step_index(n);
	const double *p = args->in[0], *g = args->in[1], *step = args->in[at], t = step[STEP_GUARD_UPDATES];
	const double factor = step[STEP_GUARD_FACTOR], scale = a->rule == UPDATE_lamb ? 1 : factor;
	const double *const sums[2] = { at + 1 < n->n_in ? args->in[at + 1] : NULL,
					at + 1 < n->n_in ? args->in[at + 2] : NULL };
	double *out = args->out[0];
	const struct ref_update u = { .o = &a->o,
				      .rate = args->page->lr * update_ratio(a, sums, factor),
				      .c1 = 1 - pow(a->o.beta1, t),
				      .c2 = 1 - pow(a->o.beta2, t),
				      .keeps = moments && args->out[1] };
	const int64_t count = shape_count(&n->in[0]->shape);

	if (step[STEP_GUARD_SKIP] != 0) {
		if (a->rule == UPDATE_lamb_step)
			memset(out, 0, (size_t)count * sizeof(*out));
		return;
	}
	for (int64_t i = 0; i < count; i++) {
		double m[UPDATE_MOMENTS_MAX] = { 0 };

		for (int k = 0; u.keeps && k < moments; k++)
			m[k] = ((const double *)args->out[1 + k])[i];
		out[i] = formulas[a->rule](&u, p[i], g[i] * scale, m);
		for (int k = 0; u.keeps && k < moments; k++)
			((double *)args->out[1 + k])[i] = m[k];
	}
}

const struct kernel update_ref = REF_KERNEL(run_update_ref);
