/* watch_ref.c: number by number. */
#include <math.h>

#include "trainer/ops/ref_kernel.h"
#include "trainer/ops/watch/watch.h"

static void look(double *out, double v)
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

static int watch_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const double *x = args->in[0], *before = args->in[1];
	double *out = args->out[0];

	(void)err;
	if (!args->page->watch)
		return 0;
	memset(out, 0, WATCH_VALUES * sizeof(*out));
	for (int64_t i = 0; i < shape_count(&n->in[0]->shape); i++)
		look(out, before ? x[i] - before[i] : x[i]);
	return 0;
}

static int watch_hold_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;

	(void)err;
	if (args->page->watch)
		memcpy(args->out[0], args->in[0], tensor_bytes(n->in[0]));
	return 0;
}

const struct kernel watch_ref = REF_KERNEL(watch_run);
const struct kernel watch_hold_ref = REF_KERNEL(watch_hold_run);
