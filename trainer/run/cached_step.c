/* cached_step.c: see cached_step.h. */
#include "trainer/run/cached_step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "trainer/data/loader/loader.h"
#include "trainer/run/exec/exec.h"

enum { STEPS_LEAST = 4, STEPS_MOST = 100 };

struct fed_batch { /* arguments of a micro-batch's run */
	const struct program *program;
	struct step_page page;
};

struct cached_step {
	void *inputs, *targets; /* of the first micro-batch; the others run on the same samples, or the first of them */
	size_t inputs_bytes, targets_bytes;
	struct fed_batch first, last;
	int64_t micros; /* micro-batches of a step; 0: no step was kept */
};

int cached_step_new(struct cached_step **ret, struct err *err)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : err_set(err, ERR_NOMEM, "out of memory: cached batch");
}

void cached_step_free(struct cached_step *b)
{
	if (!b)
		return;
	free(b->inputs);
	free(b->targets);
	free(b);
}

static size_t batch_bytes(const struct program *p, const struct tensor *t)
{
	return tensor_bytes(t) * (size_t)p->schedule.slots;
}

static int copy_batch(struct cached_step *b, const struct program *p, const struct exec_call *call, struct err *err)
{
	b->inputs_bytes = batch_bytes(p, p->inputs);
	b->targets_bytes = batch_bytes(p, p->targets);
	b->inputs = malloc(b->inputs_bytes + 1);
	b->targets = malloc(b->targets_bytes + 1);
	if (!b->inputs || !b->targets)
		return err_set(err, ERR_NOMEM, "out of memory: cached batch");
	memcpy(b->inputs, call->inputs, b->inputs_bytes);
	memcpy(b->targets, call->targets, b->targets_bytes);
	return 0;
}

int cached_step_keep(struct cached_step *b, const struct loader_batch *of, const struct program *p,
		     const struct exec_call *call, struct err *err)
{
	const struct fed_batch fed = { p, *call->page };
	int rc = 0;

	if (b->micros || of->blank || call->page->step != 1)
		return 0;
	if (of->micro == 0) {
		b->first = fed;
		rc = copy_batch(b, p, call, err);
	}
	b->last = fed;
	/* Samples of a larger last micro-batch were not copied. */
	if (of->micro + 1 == of->n_micro && batch_bytes(p, p->inputs) <= b->inputs_bytes &&
	    batch_bytes(p, p->targets) <= b->targets_bytes)
		b->micros = of->n_micro;
	return rc;
}

static int run_cached_step(const struct engine *e, struct err *err)
{
	const struct cached_step *b = e->bare;
	struct exec_done ignored;
	int rc = 0;

	for (int64_t i = 0; !rc && i < b->micros; i++) {
		const struct fed_batch *fed = i + 1 < b->micros ? &b->first : &b->last;

		rc = exec_run(e->exec, fed->program,
			      &(struct exec_call){ .page = &fed->page, .inputs = b->inputs, .targets = b->targets },
			      &ignored, err);
	}
	return rc;
}

/* Finds the least number of all ranks; 0 where a rank has kept no batch. */
static int agree_steps(const struct engine *e, int64_t *n, struct err *err)
{
	struct comm *c = rank_comm(&e->rank);
	int64_t *all = calloc((size_t)c->world, sizeof(*all));
	int rc;

	if (!all)
		return err_set(err, ERR_NOMEM, "out of memory: steps of all ranks");
	all[c->rank] = *n;
	rc = c->ops->all_gather(c, all, sizeof(*all), err);
	for (int r = 0; r < c->world; r++)
		*n = all[r] < *n ? all[r] : *n;
	free(all);
	return rc;
}

int cached_step_run(const struct engine *e, double *ret, struct err *err)
{
	int64_t n = e->bare->micros ? 1 : 0;
	double start;
	int rc = agree_steps(e, &n, err);

	*ret = NAN;
	if (rc || !n)
		return rc;
	start = clock_mono_s();
	rc = run_cached_step(e, err); /* warms up the caches */
	n = (int64_t)fmin(STEPS_MOST, fmax(STEPS_LEAST, CACHED_STEP_S / (clock_mono_s() - start)));
	if (!rc)
		rc = agree_steps(e, &n, err);
	start = clock_mono_s();
	for (int64_t i = 0; !rc && i < n; i++)
		rc = run_cached_step(e, err);
	if (!rc)
		*ret = (clock_mono_s() - start) / (double)n;
	return rc;
}
