/* reduction_tree.c: see reduction_tree.h. The left part of every node begins at a multiple of its size, so a subtree is told by its
 * first leaf and its level, and two of them are parts of one node when the first one's number at that level is even. */
#include "trainer/graph/reduction_tree.h"

#include <stddef.h>

int reduction_tree_room(int64_t all, int parts)
{
	int most = 1;

	for (int p = 0; p < parts; p++) {
		const struct reduction_tree l = reduction_tree_part(all, p, parts);

		for (int64_t n = 1; n <= l.n; n++) {
			const int roots = reduction_tree_roots(l.first, n, NULL);

			most = roots > most ? roots : most;
		}
	}
	return most;
}

/* Subtrees that were put on the stack and wait for their right neighbours. */
struct waiting {
	int64_t first[REDUCTION_TREE_ROOTS_MAX];
	uint8_t level[REDUCTION_TREE_ROOTS_MAX];
	int term[REDUCTION_TREE_ROOTS_MAX]; /* the first of each */
	int n;
};

/* Returns how many sums of two it makes possible. */
static uint8_t put(struct waiting *w, int term, int64_t first, uint8_t level)
{
	uint8_t adds = 0;

	w->term[w->n] = term;
	w->first[w->n] = first;
	w->level[w->n++] = level;
	while (w->n > 1 && w->level[w->n - 2] == w->level[w->n - 1] &&
	       !(w->first[w->n - 2] >> w->level[w->n - 2] & 1)) {
		w->n--;
		w->level[w->n - 1]++;
		adds++;
	}
	return adds;
}

/* Appends a part's roots to an order that has n terms. */
static int put_part(struct waiting *w, uint8_t *ret, int n, const struct reduction_tree *l)
{
	uint8_t level[REDUCTION_TREE_ROOTS_MAX];
	const int roots = reduction_tree_roots(l->first, l->n, level);
	int64_t at = l->first;

	for (int i = 0; i < roots; i++) {
		ret[n] = put(w, n, at, level[i]);
		n++;
		at += INT64_C(1) << level[i];
	}
	return n;
}

/* What is left has no right neighbours: it is added from the right. */
static int close_order(const struct waiting *w, uint8_t *ret, int n)
{
	if (n)
		ret[n - 1] = (uint8_t)(ret[n - 1] + w->n - 1);
	return n;
}

int reduction_tree_order(uint8_t *ret, int64_t all, int parts)
{
	struct waiting w = { .n = 0 };
	int n = 0;

	for (int p = 0; p < parts; p++) {
		const struct reduction_tree l = reduction_tree_part(all, p, parts);

		n = put_part(&w, ret, n, &l);
	}
	return close_order(&w, ret, n);
}

/* The leaves of neighbouring parts, as one part's. */
static struct reduction_tree leaves_of_run(int64_t all, int parts, struct reduction_tree_run run)
{
	struct reduction_tree l = reduction_tree_part(all, run.first, parts);
	const struct reduction_tree last = reduction_tree_part(all, run.first + run.n - 1, parts);

	l.n = last.first + last.n - l.first;
	return l;
}

int reduction_tree_order_run(uint8_t *ret, int *begin, int64_t all, int parts, struct reduction_tree_run run)
{
	struct waiting w = { .n = 0 };
	int n = 0;

	for (int p = run.first; p < run.first + run.n; p++) {
		const struct reduction_tree l = reduction_tree_part(all, p, parts);

		n = put_part(&w, ret, n, &l);
	}
	for (int i = 0; i < w.n; i++)
		begin[i] = w.term[i];
	begin[w.n] = n;
	return w.n;
}

int reduction_tree_order_runs(uint8_t *ret, int64_t all, int parts, const struct reduction_tree_run *run, int n_runs)
{
	struct waiting w = { .n = 0 };
	int n = 0;

	for (int i = 0; i < n_runs; i++) {
		const struct reduction_tree l = leaves_of_run(all, parts, run[i]);

		n = put_part(&w, ret, n, &l);
	}
	return close_order(&w, ret, n);
}

int reduction_tree_order_own(uint8_t ret[REDUCTION_TREE_ROOTS_MAX], const struct reduction_tree *l)
{
	struct waiting w = { .n = 0 };

	return close_order(&w, ret, put_part(&w, ret, 0, l));
}
