/* series_line.h: a line of a chart as the points that are drawn of it, with the digits that pixels need. Private to
 * web/api/native. */
#ifndef DPT_NATIVE_SERIES_LINE_H
#define DPT_NATIVE_SERIES_LINE_H

#include "web/api/js.h"
#include "web/store/read/points.h"

/* Members of an open object:
 *   xq, q      units of x and of values, powers of ten; where x is a step, xq is 1
 *   x, y       the first, smallest, largest and last point of every bucket in the order of x, each once: an integer is
 *              the distance from the integer before it (from 0 at first), in units; null a value that is not finite; a
 *              string a value far off the others, as it is
 *   k          how many of the points each bucket has, unless each has one
 *   m, w       the mean (as y) and the number of the finite values of each bucket that has any, unless these points are
 *              all there are
 * Resolution: a 4096th of what lies between the 5th and 95th percentile of the drawn values, and four digits of all
 * but the smallest tenth. false: out of memory. */
bool series_line_write(struct js *j, const struct points_line *l, const struct points_chart *chart, bool steps,
		       struct arena *a);

#endif
