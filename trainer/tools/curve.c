/* curve.c: times every size several times; the slowest rank counts. */
#include "trainer/tools/curve.h"

#include <stdlib.h>

#include "tracker/base/array.h"
#include "tracker/base/clock.h"

#define TIMES 7
#define ALIGN 256 /* bytes of a rank's part are a multiple of it */

static const double sizes[] = { 4096, 65536, 1048576, 4194304, 16777216, 67108864 };
static const char *const ops[] = { "allreduce", "all_gather", "reduce_scatter" };

static int run_collective(struct comm *c, int op, void *data, size_t bytes, struct err *err)
{
	const size_t each = bytes / (size_t)c->world;

	if (op == 0)
		return c->ops->allreduce(c, data, (int64_t)(bytes / sizeof(float)), DTYPE_F32, err);
	if (op == 1)
		return c->ops->all_gather(c, data, (int64_t)each, err);
	return c->ops->reduce_scatter(c, data, (int64_t)(each / sizeof(float)), DTYPE_F32, err);
}

/* All ranks start together, so that waiting for another rank's start is not included. */
static int time_collective(struct comm *c, int op, void *data, struct curve_point *p, struct err *err)
{
	double seconds[TIMES];
	int rc = 0;

	for (int i = 0; !rc && i < TIMES; i++) {
		double start;

		rc = c->ops->barrier(c, err);
		start = clock_mono_s();
		if (!rc)
			rc = run_collective(c, op, data, (size_t)p->bytes, err);
		seconds[i] = clock_mono_s() - start;
	}
	p->seconds = median_of(seconds, TIMES);
	return rc;
}

/* Replaces the seconds by those of the slowest rank. */
static int take_slowest_rank(struct comm *c, struct curve_point *points, int n, struct err *err)
{
	double *all = calloc((size_t)c->world * (size_t)n, sizeof(*all));
	int rc = all ? 0 : err_set(err, ERR_NOMEM, "out of memory: collectives");

	for (int i = 0; !rc && i < n; i++)
		all[c->rank * n + i] = points[i].seconds;
	if (!rc)
		rc = c->ops->all_gather(c, all, (int64_t)((size_t)n * sizeof(*all)), err);
	for (int i = 0; !rc && i < n; i++)
		for (int r = 0; r < c->world; r++)
			points[i].seconds = all[r * n + i] > points[i].seconds ? all[r * n + i] : points[i].seconds;
	free(all);
	return rc;
}

int curve_measure(struct curve_point ret[CURVE_POINTS], int *ret_n, const struct engine *e, struct err *err)
{
	struct comm *c = rank_comm(&e->rank);
	const size_t n_sizes = sizeof(sizes) / sizeof(sizes[0]), unit = ALIGN * (size_t)c->world;
	void *data;
	int rc, n = 0;

	*ret_n = 0;
	if (c->world == 1 || e->rank.backend->streams)
		return 0;
	rc = c->ops->alloc(c, (size_t)sizes[n_sizes - 1], &data, err);
	for (size_t i = 0; !rc && i < sizeof(ops) / sizeof(ops[0]); i++)
		for (size_t k = 0; !rc && k < n_sizes; k++) {
			const size_t bytes = (size_t)sizes[k] / unit * unit;

			ret[n] = (struct curve_point){ ops[i], (double)bytes, 0, c->world,
						      rank_transport(&e->rank) };
			rc = bytes ? time_collective(c, (int)i, data, &ret[n], err) : 0;
			n += bytes != 0;
		}
	if (!rc)
		rc = take_slowest_rank(c, ret, n, err);
	*ret_n = rc ? 0 : n;
	return rc;
}
