/* SPDX-License-Identifier: Apache-2.0 */
/* series_line.h: a line of a chart as the points to draw, with as many digits as pixels need. Private to
 * web/api/native. */
#ifndef DPT_NATIVE_SERIES_LINE_H
#define DPT_NATIVE_SERIES_LINE_H

#include "web/api/js.h"
#include "web/store/read/points.h"

/* Writes members of an open object:
 *   xq, q      units of x and of values, powers of ten; xq is 1 if x is a step
 *   x, y       the first, smallest, largest and last point of every bucket in the order of x, without duplicates:
 *              an integer is the difference to the previous integer (the first: to 0), in units; null is a
 *              non-finite value; a string is a value far outside the range of the others, unchanged
 *   k          the number of these points in each bucket, unless each has one
 *   m, w       the mean (coded as y) and the number of the finite values of each bucket that has any, unless the
 *              buckets have no other points
 * Resolution: 1/4096 of the range between the 5th and 95th percentile of the drawn values, and four digits of all but
 * the smallest tenth. Returns false when out of memory. */
bool series_line_write(struct js *j, const struct points_line *l, const struct points_chart *chart, bool steps,
		       struct arena *a);

#endif
