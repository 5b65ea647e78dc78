/* partial_sums_cpu.c: terms by all threads, each a range of elements. */
#include "trainer/backends/cpu/cpu.h"
#include "trainer/ops/partial_sums/partial_sums_host.h"

#define RUN 1024 /* elements: threads share no cache line */

struct terms_state {
	struct partial_sums_host terms;
	int parts;
};

struct terms_job {
	const struct terms_state *state;
	const struct kernel_args *args;
	void (*range)(const struct partial_sums_host *s, const struct kernel_args *args, struct partial_sums_range r);
};

static int terms_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct terms_state *s;
	void *state;
	int rc = cpu_state_new(sizeof(*s), &state, err);

	if (rc)
		return rc;
	s = state;
	s->terms = partial_sums_host_of(n);
	s->parts = cpu_parts(env, s->terms.count);
	*ret_state = s;
	return 0;
}

static void part_of(void *arg, int part, int parts)
{
	const struct terms_job *j = arg;
	const struct cpu_range r = cpu_split(j->state->terms.count, RUN, part, parts);

	if (r.begin < r.end)
		j->range(&j->state->terms, j->args, (struct partial_sums_range){ r.begin, r.end });
}

static int push_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct terms_state *s = state;
	struct terms_job j = { s, args, partial_sums_push_range };

	(void)err;
	cpu_parallel(s->parts, part_of, &j);
	return 0;
}

static int fold_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct terms_state *s = state;
	struct terms_job j = { s, args, partial_sums_fold_range };

	(void)err;
	cpu_parallel(s->parts, part_of, &j);
	return 0;
}

extern const struct kernel term_push_cpu, term_fold_cpu;
const struct kernel term_push_cpu = { .prepare = terms_prepare, .run = push_run, .release = cpu_state_release };
const struct kernel term_fold_cpu = { .prepare = terms_prepare, .run = fold_run, .release = cpu_state_release };
