/* whole.c: plans the memory of one configuration with the passes of its strategy. */
#include "trainer/tools/whole.h"

/* Unused memory between tensors counts as activations, which cause it. */
static void fill_planned_bytes(struct advise_cost *ret, const struct plan *p)
{
	size_t placed = p->data_bytes, known = 0;

	*ret = (struct advise_cost){ .host_bytes = (double)p->category_bytes[PLAN_OFFLOADED] };
	for (int s = 0; s < SPACE_OFFLOAD; s++)
		placed += p->slab_bytes[s];
	for (int i = 0; i < PLAN_CATEGORY_COUNT; i++) {
		known += i == PLAN_OFFLOADED ? 0 : p->category_bytes[i];
		ret->bytes[i] = i == PLAN_OFFLOADED || i == PLAN_SNAPSHOT ? 0 : (double)p->category_bytes[i];
	}
	if (placed > known)
		ret->bytes[PLAN_ACTIVATIONS] += (double)(placed - known);
}

static double planning_work(const struct prepared *p)
{
	double work = 0;

	for (int i = 0; i < p->n_programs; i++)
		work += (double)p->program[i]->schedule.n * p->program[i]->schedule.n;
	return work;
}

static int plan_stage_in_full(struct advise_cost *ret, double *work, const struct job *job, int stage, struct err *err)
{
	const struct run_config *cfg = job->cfg;
	struct board board = { .stop_signal = 0 }; /* a plan is never stopped */
	/* In the last pipeline, whose ranks do not print warnings. On separate machines, so that shared memory is not
	 * counted. */
	const struct rank_context seat = { .world = cfg->world, .rank = cfg->world - (int)config_stages(cfg) + stage,
				   .local_world = 1, .nodes = cfg->world, .shm_fd = -1, .signal_fd = -1,
				   .board = &board };
	struct engine *e;
	int rc = engine_open_plan(&e, job, &seat, err);

	if (rc)
		return rc;
	fill_planned_bytes(ret, &e->prepared.plan);
	*work += planning_work(&e->prepared);
	engine_close(e);
	return 0;
}

int whole_plan(struct advise_cost *ret, double *work, const struct job *job, int stage, struct err *err)
{
	const int last = (int)config_stages(job->cfg) - 1, stages[] = { stage, 0, last };
	int rc = 0;

	*ret = (struct advise_cost){ .host_bytes = 0 };
	for (int i = 0; !rc && i < 3; i++) {
		struct advise_cost one;

		if ((i > 0 && stages[i] == stage) || (i == 2 && !last))
			continue;
		rc = plan_stage_in_full(&one, work, job, stages[i], err);
		if (!rc && advise_bytes(&one) > advise_bytes(ret))
			*ret = one;
	}
	return rc;
}
