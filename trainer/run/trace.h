/* SPDX-License-Identifier: Apache-2.0 */
/* trace.h: the timeline of a rank in the steps of --trace-steps: spans of nodes, waits, loader threads, the writer. Any
 * thread adds; the thread that runs the steps reads them when a step is over. */
#ifndef DPT_RUN_TRACE_H
#define DPT_RUN_TRACE_H

#include "tracker/base/err.h"

#define TRACE_STEP_ROW "step" /* row of the thread that runs the steps: its spans fill the step without a gap */

/* Texts are borrowed until trace_free. */
struct trace_span {
	const char *row; /* thread: TRACE_STEP_ROW, the name of a stream, "loader", "writer" */
	int number;	 /* number of a loader thread; else 0 */
	const char *name;
	const char *phase;   /* "forward"; "": none */
	int node;	     /* id in its program; -1: no node */
	double from_s, to_s; /* clock_mono_s */
};

struct trace;

struct trace *trace_new(int64_t first, int64_t last); /* traces these steps */
void trace_free(struct trace *t); /* NULL is fine */

/* Called between steps, for the next one, whose time began at from_s. Returns false, and nothing is kept, when it is
 * not traced. NULL is fine. */
bool trace_begin(struct trace *t, int64_t step, double from_s);
bool trace_on(const struct trace *t);
bool trace_covers(const struct trace *t, int64_t step); /* true if that step is, will be or was traced; NULL: false */

/* Adds a span while the trace is on. A span that ends between two steps, such as a loader thread's, belongs to the
 * later step if that is traced. Without memory spans are dropped, which trace_end counts. */
void trace_add(struct trace *t, const struct trace_span *s);

/* Ends the step and fills the gaps of its own row with spans "other". Borrowed until the next trace_begin; *ret_lost:
 * number of dropped spans. */
const struct trace_span *trace_end(struct trace *t, double to_s, size_t *ret_n, size_t *ret_lost);

double trace_from(const struct trace *t); /* when the step began */

/* Nanoseconds to add to clock_mono_s for nanoseconds since 1970; constant for a trace. */
int64_t trace_date_offset_ns(const struct trace *t);

#endif
