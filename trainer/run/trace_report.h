/* trace_report.h: records the spans of a step in the run: a table under the key trace/spans, by rank and step. */
#ifndef DPT_RUN_TRACE_REPORT_H
#define DPT_RUN_TRACE_REPORT_H

#include "tracker/dptrack.h"
#include "trainer/run/trace.h"

/* Ends the trace of the step, which was over at to_s (clock_mono_s). The table's columns: thread, name, phase, node
 * (-1: none), begin in nanoseconds since 1970, nanoseconds; the first row is the step itself. Warns when rows are
 * lost. */
void trace_report_step(struct trace *t, struct dptrack_run *run, int64_t step, double to_s);

#endif
