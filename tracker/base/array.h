/* SPDX-License-Identifier: Apache-2.0 */
/* array.h: growing arrays on the heap, and the median of an array. */
#ifndef DPT_BASE_ARRAY_H
#define DPT_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* Makes room for at least `want` items in an array made by malloc (or NULL): `items` is the address of the pointer,
 * `cap` that of its capacity in items, of any integer type. The capacity at least doubles. Returns false when out of
 * memory, or if the capacity does not fit its type; then nothing changes.
 *
 *	if (!array_reserve(&l->items, &l->cap, l->n + more))
 *		return err_nomem(err, NULL);
 *
 * Arrays that share one capacity: reserve each with a copy of it, then set it. */
#define array_reserve(items, cap, want)                                                                                \
	({                                                                                                             \
		size_t array_cap = (size_t) * (cap);                                                                   \
		void *array_new = array_grow(*(items), &array_cap, (size_t)(want), sizeof(**(items)));                 \
		bool array_fits = array_new && (size_t)(__typeof__(*(cap)))array_cap == array_cap;                     \
                                                                                                                       \
		if (array_new)                                                                                         \
			*(items) = array_new;                                                                          \
		if (array_fits)                                                                                        \
			*(cap) = (__typeof__(*(cap)))array_cap;                                                        \
		array_fits;                                                                                            \
	})

/* Appends an item, which may be a compound literal; n is the address of their number. Returns false when out of memory.
 *
 *	if (!array_push(&l->items, &l->n, &l->cap, (struct item){ key, value })) */
#define array_push(items, n, cap, ...)                                                                                 \
	(array_reserve(items, cap, *(n) + 1) && ((*(items))[(*(n))++] = (__VA_ARGS__), true))

/* The function of array_reserve: returns the array with room for `want` items of item_bytes, or NULL when out of
 * memory (then `items` is still valid). *cap is the old and the new capacity. */
void *array_grow(void *items, size_t *cap, size_t want, size_t item_bytes);

/* Sorting and the median of doubles, which must not be NaN. */
void median_sort(double *v, size_t n); /* ascending */
double median_of(double *v, size_t n); /* sorts v; of an even number the mean of the middle two; NaN if n is 0 */

/* Returns the median, and in *ret_deviation the robust standard deviation: the median absolute deviation times the
 * factor that makes it that of a normal distribution. Single outliers move neither. Overwrites v. */
#define MEDIAN_MAD_DEVIATION 1.4826
double median_robust(double *v, size_t n, double *ret_deviation);

#endif
