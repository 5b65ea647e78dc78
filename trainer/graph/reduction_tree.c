/* SPDX-License-Identifier: Apache-2.0 */
/* reduction_tree.c: see reduction_tree.h. The left child of every node starts at a multiple of its size. A subtree is
 * therefore identified by its first leaf and its level. Two neighbouring subtrees of one level are siblings if the
 * first one's index at that level is even. */
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

/* Stack of subtrees whose right siblings are still missing. */
struct root_stack {
	int64_t first[REDUCTION_TREE_ROOTS_MAX];
	uint8_t level[REDUCTION_TREE_ROOTS_MAX];
	int term[REDUCTION_TREE_ROOTS_MAX]; /* index of its first term */
	int n;
};

/* Pushes a subtree and merges siblings. Returns the number of merges. */
static uint8_t push_root(struct root_stack *w, int term, int64_t first, uint8_t level)
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

/* Appends a part's roots to an order with n terms; returns the new number of terms. */
static int push_part_roots(struct root_stack *w, uint8_t *ret, int n, const struct reduction_tree *l)
{
	uint8_t level[REDUCTION_TREE_ROOTS_MAX];
	const int roots = reduction_tree_roots(l->first, l->n, level);
	int64_t at = l->first;

	for (int i = 0; i < roots; i++) {
		ret[n] = push_root(w, n, at, level[i]);
		n++;
		at += INT64_C(1) << level[i];
	}
	return n;
}

/* Subtrees that remain have no right sibling: adds them from the right. */
static int close_root_order(const struct root_stack *w, uint8_t *ret, int n)
{
	if (n)
		ret[n - 1] = (uint8_t)(ret[n - 1] + w->n - 1);
	return n;
}

int reduction_tree_order(uint8_t *ret, int64_t all, int parts)
{
	struct root_stack w = { .n = 0 };
	int n = 0;

	for (int p = 0; p < parts; p++) {
		const struct reduction_tree l = reduction_tree_part(all, p, parts);

		n = push_part_roots(&w, ret, n, &l);
	}
	return close_root_order(&w, ret, n);
}

/* Joins the leaves of neighbouring parts into one range. */
static struct reduction_tree join_run_leaves(int64_t all, int parts, struct reduction_tree_run run)
{
	struct reduction_tree l = reduction_tree_part(all, run.first, parts);
	const struct reduction_tree last = reduction_tree_part(all, run.first + run.n - 1, parts);

	l.n = last.first + last.n - l.first;
	return l;
}

int reduction_tree_order_run(uint8_t *ret, int *begin, int64_t all, int parts, struct reduction_tree_run run)
{
	struct root_stack w = { .n = 0 };
	int n = 0;

	for (int p = run.first; p < run.first + run.n; p++) {
		const struct reduction_tree l = reduction_tree_part(all, p, parts);

		n = push_part_roots(&w, ret, n, &l);
	}
	for (int i = 0; i < w.n; i++)
		begin[i] = w.term[i];
	begin[w.n] = n;
	return w.n;
}

int reduction_tree_order_runs(uint8_t *ret, int64_t all, int parts, const struct reduction_tree_run *run, int n_runs)
{
	struct root_stack w = { .n = 0 };
	int n = 0;

	for (int i = 0; i < n_runs; i++) {
		const struct reduction_tree l = join_run_leaves(all, parts, run[i]);

		n = push_part_roots(&w, ret, n, &l);
	}
	return close_root_order(&w, ret, n);
}

int reduction_tree_order_own(uint8_t ret[REDUCTION_TREE_ROOTS_MAX], const struct reduction_tree *l)
{
	struct root_stack w = { .n = 0 };

	return close_root_order(&w, ret, push_part_roots(&w, ret, 0, l));
}
