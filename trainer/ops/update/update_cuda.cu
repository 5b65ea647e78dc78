/* SPDX-License-Identifier: Apache-2.0 */
/* update_cuda.cu: the formulas of update.h. Gradient, parameter and moments are each read once and written once. Each
 * thread computes the factors of a step once. */
#include "trainer/backends/cuda/many.h"

extern "C" {
#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/ops/update/update.h"
}

inline namespace update_kernels {

/* What formulas read. */
template <typename T> struct update_operands {
	struct update_attr attr;
	const step_page *page;
	const double *step;    /* output of guard */
	const double *sums[2]; /* NULL: absent */
	const T *p, *g;
	T *out, *m[UPDATE_MOMENTS_MAX]; /* m: NULL if absent */
};

/* A formula has: moments, the most it uses; begin(u), which computes its factors; and one(u, d, w, v), which turns w
 * from the parameter into output 0 and updates moments v; d: the scaled gradient. */
template <typename T> struct sgd_formula {
	static constexpr int moments = 1;
	T lr = 0;

	__device__ void begin(const update_operands<T> &u)
	{
		lr = (T)u.page->lr;
	}

	__device__ void one(const update_operands<T> &u, T d, T &w, T *v) const
	{
		const T momentum = (T)u.attr.o.momentum;

		d += (T)u.attr.o.weight_decay * w;
		if (u.m[0]) {
			v[0] = momentum * v[0] + d;
			d = u.attr.o.nesterov ? d + momentum * v[0] : v[0];
		}
		w -= lr * d;
	}
};

template <typename T> struct adam_formula {
	static constexpr int moments = 2;
	T lr = 0, rate = 0, root = 0; /* rate: lr / (1 - b1^t); root: sqrt(1 - b2^t) */

	__device__ void begin(const update_operands<T> &u)
	{
		lr = (T)u.page->lr;
		rate = (T)(u.page->lr / (1 - pow(u.attr.o.beta1, u.step[STEP_GUARD_UPDATES])));
		root = (T)sqrt(1 - pow(u.attr.o.beta2, u.step[STEP_GUARD_UPDATES]));
	}

	__device__ void one(const update_operands<T> &u, T d, T &w, T *v) const
	{
		const T decay = (T)u.attr.o.weight_decay, rest1 = (T)(1 - u.attr.o.beta1);
		const T keep2 = (T)u.attr.o.beta2, rest2 = (T)(1 - u.attr.o.beta2);

		if (u.attr.rule == UPDATE_adam)
			d += decay * w;
		else
			w -= lr * decay * w;
		v[0] += rest1 * (d - v[0]);
		v[1] = keep2 * v[1] + rest2 * d * d;
		w -= rate * v[0] / (sqrt(v[1]) / root + (T)u.attr.o.eps);
	}
};

template <typename T> using adamw_formula = adam_formula<T>;

template <typename T> struct lars_formula {
	static constexpr int moments = 1;
	T rate = 0;

	__device__ void begin(const update_operands<T> &u)
	{
		rate = (T)(u.page->lr * update_ratio(&u.attr, u.sums, u.step[STEP_GUARD_FACTOR]));
	}

	__device__ void one(const update_operands<T> &u, T d, T &w, T *v) const
	{
		d = rate * (d + (T)u.attr.o.weight_decay * w);
		if (u.m[0])
			d = v[0] = (T)u.attr.o.momentum * v[0] + d;
		w -= d;
	}
};

template <typename T> struct lamb_step_formula {
	static constexpr int moments = 2;
	T share1 = 0, share2 = 0; /* 1 / (1 - b^t) */

	__device__ void begin(const update_operands<T> &u)
	{
		share1 = (T)(1 / (1 - pow(u.attr.o.beta1, u.step[STEP_GUARD_UPDATES])));
		share2 = (T)(1 / (1 - pow(u.attr.o.beta2, u.step[STEP_GUARD_UPDATES])));
	}

	__device__ void one(const update_operands<T> &u, T d, T &w, T *v) const
	{
		const T keep1 = (T)u.attr.o.beta1, rest1 = (T)(1 - u.attr.o.beta1);
		const T keep2 = (T)u.attr.o.beta2, rest2 = (T)(1 - u.attr.o.beta2);

		v[0] = keep1 * v[0] + rest1 * d;
		v[1] = keep2 * v[1] + rest2 * d * d;
		w = v[0] * share1 / (sqrt(v[1] * share2) + (T)u.attr.o.eps) + (T)u.attr.o.weight_decay * w;
	}
};

template <typename T> struct lamb_formula {
	static constexpr int moments = 0;
	T rate = 0;

	__device__ void begin(const update_operands<T> &u)
	{
		rate = (T)(u.page->lr * update_ratio(&u.attr, u.sums, 1));
	}

	__device__ void one(const update_operands<T> &, T d, T &w, T *) const
	{
		w -= rate * d;
	}
};

template <typename T, class Formula> struct update_loop {
	static constexpr int width = vector_width<T>;
	static constexpr int moments = Formula::moments;
	update_operands<T> u;
	Formula formula;

	__device__ void begin()
	{
		formula.begin(u);
	}

	template <int W> __device__ void at(int64_t i) const
	{
		const T factor = moments ? (T)u.step[STEP_GUARD_FACTOR] : 1;
		T d[W] = {}, w[W], v[UPDATE_MOMENTS_MAX][W] = {};

		if (u.step[STEP_GUARD_SKIP] != 0) {
			if (u.attr.rule == UPDATE_lamb_step)
				store(u.out + i, d);
			return;
		}
		load(d, u.g + i);
		load(w, u.p + i);
		for (int j = 0; j < moments; j++)
			if (u.m[j])
				load(v[j], u.m[j] + i);
		for (int k = 0; k < W; k++) {
			T of[UPDATE_MOMENTS_MAX];

			for (int j = 0; j < moments; j++)
				of[j] = v[j][k];
			formula.one(u, d[k] * factor, w[k], of);
			for (int j = 0; j < moments; j++)
				v[j][k] = of[j];
		}
		for (int j = 0; j < moments; j++)
			if (u.m[j])
				store(u.m[j] + i, v[j]);
		store(u.out + i, w);
	}
};

template <typename T, class Formula>
static struct update_loop<T, Formula> make_update_loop(const struct node *n, const struct kernel_args *a)
{
	const int at = update_step_index(n);
	struct update_loop<T, Formula> l = {};

	l.u = { *static_cast<const struct update_attr *>(n->attr), a->page, cuda_in<double>(a, at), {},
		cuda_in<T>(a, 0), cuda_in<T>(a, 1), cuda_out<T>(a, 0), {} };
	for (int k = 0; at + 1 < n->n_in && k < 2; k++)
		l.u.sums[k] = cuda_in<double>(a, at + 1 + k);
	for (int k = 1; k < n->n_out; k++)
		l.u.m[k - 1] = cuda_out<T>(a, k);
	return l;
}

/* Runs nodes that have one rule. */
template <template <typename> class Formula>
static void run_formula(void *const *states, const struct kernel_args *args, int n)
{
	const struct node *first = cuda_node(states[0]);

	BY_MASTER(first->in[0]->dtype, T, const auto make = make_update_loop<T, Formula<T>>;
		  n > 1 ? many_each<update_loop<T, Formula<T>>>(states, args, n, make)
			: cuda_each(first, args, make(first, args), { cuda_count(first->in[0]), 0 }));
}

static void (*const run_rule[])(void *const *states, const struct kernel_args *args, int n) = {
#define RULE(name, ...) run_formula<name##_formula>,
	UPDATE_RULE_LIST(RULE)
#undef RULE
};

enum update_rule rule_of(void *state)
{
	return static_cast<const struct update_attr *>(cuda_node(state)->attr)->rule;
}

void run_update_many(void *const *states, const struct kernel_args *args, int n)
{
	for (int i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && rule_of(states[end]) == rule_of(states[i]); end++)
			;
		run_rule[rule_of(states[i])](states + i, args + i, end - i);
	}
}

void run_update_cuda(void *state, const struct kernel_args *args)
{
	run_rule[rule_of(state)](&state, args, 1);
}

} // namespace update_kernels

CUDA_KERNEL_MANY(update, cuda_prepare, run_update_cuda, run_update_many);
