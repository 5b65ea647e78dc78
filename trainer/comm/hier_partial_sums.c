/* hier_partial_sums.c: see hier_partial_sums.h. A root has the same bits on every machine that adds its terms, so the
 * roots of all runs can be added like those of ranks. */
#include "trainer/comm/hier_partial_sums.h"

#include "trainer/comm/sum.h"

static int count_run_roots(const struct hier_partial_sums *s, int run)
{
	int begin[REDUCTION_TREE_ROOTS_MAX + 1];

	return reduction_tree_order_run(s->t->adds, begin, s->t->leaves, s->world, s->run[run]);
}

int hier_partial_sums_roots(const struct hier_partial_sums *s, int node)
{
	int n = 0;

	for (int i = 0; i < s->n_runs; i++)
		n += s->node[i] == node ? count_run_roots(s, i) : 0;
	return n;
}

/* Lists where the terms of a run are stored, from element `first` on; local: the place of its first rank on the
 * machine. */
static void list_run_terms(const struct hier_partial_sums *s, struct reduction_tree_run run, int local, size_t first)
{
	const size_t each = dtype_bytes(s->t->dtype), bytes = (size_t)s->t->count * each;
	int n = 0;

	for (int i = 0; i < run.n; i++) {
		const struct reduction_tree l = reduction_tree_part(s->t->leaves, run.first + i, s->world);
		const int roots = reduction_tree_roots(l.first, l.n, NULL);

		for (int k = 0; k < roots; k++)
			s->t->from[n++] = s->rank[local + i] + (size_t)k * bytes + first * each;
	}
}

/* Adds the terms of a run into its roots; returns how many there are. */
static int fold_node_run(const struct hier_partial_sums *s, struct reduction_tree_run run, size_t count,
			 unsigned char *to)
{
	int begin[REDUCTION_TREE_ROOTS_MAX + 1];
	const int roots = reduction_tree_order_run(s->t->adds, begin, s->t->leaves, s->world, run);

	for (int i = 0; i < roots; i++) {
		void *root = to + (size_t)i * count * dtype_bytes(s->t->dtype);

		sum_run(&(struct sum_job){ s->t->from + begin[i], &root, begin[i + 1] - begin[i], 1, count, s->t->dtype,
					   s->t->adds + begin[i] });
	}
	return roots;
}

void hier_partial_sums_fold(const struct hier_partial_sums *s, int node, size_t first, size_t count, unsigned char *to)
{
	int local = 0;

	for (int i = 0; i < s->n_runs; i++) {
		if (s->node[i] != node)
			continue;
		list_run_terms(s, s->run[i], local, first);
		to += (size_t)fold_node_run(s, s->run[i], count, to) * count * dtype_bytes(s->t->dtype);
		local += s->run[i].n;
	}
}

/* Returns how many roots of machine `node` come before run i. */
static int count_roots_before(const struct hier_partial_sums *s, int node, int i)
{
	int n = 0;

	for (int k = 0; k < i; k++)
		n += s->node[k] == node ? count_run_roots(s, k) : 0;
	return n;
}

void hier_partial_sums_add(const struct hier_partial_sums *s, unsigned char *const *roots, size_t count, void *to)
{
	const size_t bytes = count * dtype_bytes(s->t->dtype);
	int n = 0;

	for (int i = 0; i < s->n_runs; i++) {
		const int node = s->node[i], before = count_roots_before(s, node, i), own = count_run_roots(s, i);

		for (int k = 0; k < own; k++)
			s->t->from[n++] = roots[node] + (size_t)(before + k) * bytes;
	}
	reduction_tree_order_runs(s->t->adds, s->t->leaves, s->world, s->run, s->n_runs);
	sum_run(&(struct sum_job){ s->t->from, &to, n, 1, count, s->t->dtype, s->t->adds });
}
