/* ddp.c: distributed data parallel. Every rank owns all parameters and differentiates its part of the batch. Gradients
 * are summed over the ranks in buckets (buckets.h), overlapped with the backward pass. Losses and gradients are sums
 * over samples divided by the global count (xent_grad), so the sum over ranks is the only communication. Parameters
 * stay equal because they start equal and get the same updates. */
#include "trainer/strategies/buckets.h"
#include "trainer/strategies/share.h"

static int ddp_rewrite(struct graph *g, const struct strategy_opts *o, struct err *err)
{
	int rc = 0;

	if (o->world == 1 || !g->training)
		return 0;
	if (o->sync_bn)
		rc = share_batch_norms(g, err);
	if (!rc)
		rc = share_results(g, o, err);
	if (!rc)
		rc = buckets_sum(g, o, GROUP_WORLD, err);
	return rc;
}

const struct strategy strategy_ddp = {
	.rewrite = ddp_rewrite,
	.groups = { [STREAM_COMPUTE] = STRATEGY_GROUP(GROUP_WORLD), [STREAM_COMM] = STRATEGY_GROUP(GROUP_WORLD) },
};
