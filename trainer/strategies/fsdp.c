/* fsdp.c: fully sharded data parallel: ZeRO's three stages (Rajbhandari et al. 2020) as one mechanism. Parameters are
 * stored flat in units, each cut into equal ranges (units.h). A rank owns its ranges of the parameters' masters, of
 * their moments and averages, and updates only those. Nodes read parameters gathered from all ranks (gather.h): until
 * the step's end (stages 1 and 2) or close to their use (3). Gradients are reduced and scattered (scatter.h): from
 * whole gradients that stay until then (1), or unit by unit during the backward pass (2 and 3). */
#include "trainer/graph/pass.h"
#include "trainer/strategies/gather.h"
#include "trainer/strategies/scatter.h"
#include "trainer/strategies/share.h"

static int fsdp_lay(struct graph *model, const struct strategy_opts *o, struct err *err)
{
	return o->world == 1 ? 0 : units_lay(model, o, err);
}

static int fsdp_rewrite(struct graph *g, const struct strategy_opts *o, struct err *err)
{
	struct units units;
	int rc = 0;

	if (o->world == 1)
		return 0;
	if (g->training && o->sync_bn)
		rc = share_batch_norms(g, err);
	if (!rc && g->training)
		rc = share_results(g, o, err);
	if (rc)
		return rc;
	units_cut(&units, g, o);
	if (!graph_failed(g))
		gather_params(g, &units, o);
	if (!graph_failed(g) && g->training)
		scatter_grads(g, &units, o);
	return graph_failed(g) ? share_failed(g, err) : pass_dead(g, err); /* removes casts without a reader */
}

static struct strategy_part fsdp_holds(const struct tensor *t, const struct strategy_opts *o, int rank)
{
	return units_part(&t->shard, shape_count(&t->shape), rank % o->shard_degree);
}

/* Adjacent ranks own one copy together; ranks with the same place in their copies own the same part. */
static int fsdp_group_of(const struct strategy_opts *o, enum group kind, int rank)
{
	if (kind == GROUP_SHARD)
		return rank / o->shard_degree;
	return kind == GROUP_REPLICA && o->shard_degree < o->world ? rank % o->shard_degree : -1;
}

const struct strategy strategy_fsdp = {
	.lay = fsdp_lay,
	.rewrite = fsdp_rewrite,
	.holds = fsdp_holds,
	.group_of = fsdp_group_of,
	.groups = { [STREAM_COMPUTE] = STRATEGY_GROUP(GROUP_WORLD) | STRATEGY_GROUP(GROUP_SHARD),
		    [STREAM_COMM] = STRATEGY_GROUP(GROUP_WORLD) | STRATEGY_GROUP(GROUP_SHARD) |
				    STRATEGY_GROUP(GROUP_REPLICA),
		    [STREAM_GATHER] = STRATEGY_GROUP(GROUP_SHARD) },
};
