/* SPDX-License-Identifier: Apache-2.0 */
/* rows.h: output of the benchmarks in C: a table, or one JSON object by name. */
#ifndef DPT_BENCH_ROWS_H
#define DPT_BENCH_ROWS_H

#include <stdbool.h>
#include <stdio.h>

struct rows {
	bool json, began;
};

/* bound: the limit of the value, 0 for none. */
static inline void rows_print(struct rows *r, const char *name, const char *unit, double value, double bound)
{
	if (r->json)
		printf("%s\"%s\":{\"value\":%.6g,\"unit\":\"%s\",\"bound\":%.6g}", r->began ? "," : "{", name, value,
		       unit, bound);
	else
		printf("%-52s %12.2f %-6s bound %g\n", name, value, unit, bound);
	r->began = true;
	fflush(stdout);
}

#endif
