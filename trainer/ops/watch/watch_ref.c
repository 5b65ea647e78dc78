/* SPDX-License-Identifier: Apache-2.0 */
/* watch_ref.c: statistics of a tensor, value by value. */
#include <math.h>

#include "trainer/ops/ref_kernel.h"
#include "trainer/ops/watch/watch.h"

static void count_value(double *out, double v)
{
	const double magnitude = fabs(v);

	if (!isfinite(v)) {
		out[WATCH_NONFINITE]++;
		return;
	}
	out[WATCH_SUMSQ] += v * v;
	out[WATCH_LARGEST] = fmax(out[WATCH_LARGEST], magnitude);
	if (v == 0)
		out[WATCH_ZEROS]++;
	else
		out[WATCH_BUCKET + watch_bucket(watch_exponent(v))]++;
}

static int run_watch_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const double *x = args->in[0], *before = args->in[1];
	double *out = args->out[0];

	(void)err;
	if (!args->page->watch)
		return 0;
	memset(out, 0, WATCH_VALUES * sizeof(*out));
	for (int64_t i = 0; i < shape_count(&n->in[0]->shape); i++)
		count_value(out, before ? x[i] - before[i] : x[i]);
	return 0;
}

static int run_watch_hold_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;

	(void)err;
	if (args->page->watch)
		memcpy(args->out[0], args->in[0], tensor_bytes(n->in[0]));
	return 0;
}

const struct kernel watch_ref = REF_KERNEL(run_watch_ref);
const struct kernel watch_hold_ref = REF_KERNEL(run_watch_hold_ref);
