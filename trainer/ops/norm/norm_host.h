/* SPDX-License-Identifier: Apache-2.0 */
/* norm_host.h: exact sums and the norm on host memory, shared by all host backends. Each handles few numbers. */
#ifndef DPT_OPS_NORM_HOST_H
#define DPT_OPS_NORM_HOST_H

#include "trainer/graph/kernel.h"
#include "trainer/ops/norm/exact.h"
#include "trainer/ops/norm/norm.h"

static inline int prepare_exact_host(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	(void)env, (void)err;
	*ret_state = n;
	return 0;
}

static inline void release_exact_host(void *state)
{
	(void)state;
}

static inline void run_exact_host(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const double *terms = args->in[0];
	int64_t *w = args->out[0];

	memset(w, 0, EXACT_WORDS * sizeof(*w));
	for (int64_t i = 0; i < shape_count(&n->in[0]->shape); i++)
		exact_add(w, terms[i]);
}

static inline void add_exact_words(int64_t *w, void *const *in, int n)
{
	memset(w, 0, EXACT_WORDS * sizeof(*w));
	for (int k = 0; k < n; k++)
		for (int i = 0; i < EXACT_WORDS; i++)
			w[i] += ((const int64_t *)in[k])[i];
}

/* Adds the inputs, exactly for i64 words. Stores the words, the sum, or the norm divided by the loss scale. */
static inline void run_norm_host(void *state, const struct kernel_args *args)
{
	static const struct norm_attr root = { .sum = false };
	const struct node *n = state;
	const struct norm_attr *a = n->attr ? n->attr : &root;
	const bool exact = n->n_in > 0 && n->in[0]->dtype == DTYPE_I64;
	int64_t words[EXACT_WORDS];
	double sum = 0;

	if (exact)
		add_exact_words(words, args->in, n->n_in);
	if (exact && a->sum) {
		memcpy(args->out[0], words, sizeof(words));
		return;
	}
	for (int k = 0; !exact && k < n->n_in; k++)
		sum += *(const double *)args->in[k];
	if (exact)
		sum = exact_value(words);
	*(double *)args->out[0] = a->sum || a->square ? sum : sqrt(sum) / args->page->loss_scale;
}

#define EXACT_KERNEL { .prepare = prepare_exact_host, .run = run_exact_host, .release = release_exact_host }
#define NORM_KERNEL { .prepare = prepare_exact_host, .run = run_norm_host, .release = release_exact_host }

#endif
