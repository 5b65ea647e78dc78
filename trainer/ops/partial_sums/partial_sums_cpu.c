/* SPDX-License-Identifier: Apache-2.0 */
/* partial_sums_cpu.c: partial sums by all threads, each on a range of elements. */
#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/cpu.h"
#include "trainer/ops/partial_sums/partial_sums_host.h"

#define RUN 1024 /* elements; threads share no cache line */

struct terms_state {
	struct partial_sums_host terms;
	int parts;
};

struct terms_job {
	const struct terms_state *state;
	const struct kernel_args *args;
	void (*range)(const struct partial_sums_host *s, const struct kernel_args *args, struct partial_sums_range r);
};

static int prepare_terms_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct terms_state *s = mem_zalloc(sizeof(*s));

	(void)err;
	s->terms = partial_sums_host_of(n);
	s->parts = cpu_parts(env, s->terms.count);
	*ret_state = s;
	return 0;
}

static void run_terms_part(void *arg, int part, int parts)
{
	const struct terms_job *j = arg;
	const struct cpu_range r = cpu_split(j->state->terms.count, RUN, part, parts);

	if (r.begin < r.end)
		j->range(&j->state->terms, j->args, (struct partial_sums_range){ r.begin, r.end });
}

static void run_terms_push_cpu(void *state, const struct kernel_args *args)
{
	const struct terms_state *s = state;
	struct terms_job j = { s, args, partial_sums_push_range };

	cpu_parallel(s->parts, run_terms_part, &j);
}

static void run_terms_fold_cpu(void *state, const struct kernel_args *args)
{
	const struct terms_state *s = state;
	struct terms_job j = { s, args, partial_sums_fold_range };

	cpu_parallel(s->parts, run_terms_part, &j);
}

extern const struct kernel term_push_cpu, term_fold_cpu;
const struct kernel term_push_cpu = { .prepare = prepare_terms_cpu,
				      .run = run_terms_push_cpu,
				      .release = cpu_state_release };
const struct kernel term_fold_cpu = { .prepare = prepare_terms_cpu,
				      .run = run_terms_fold_cpu,
				      .release = cpu_state_release };
