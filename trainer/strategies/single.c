/* single.c: one rank: nothing to share. Where results must not depend on the number of ranks, its micro-batches are
 * summed like those of many ranks. */
#include "trainer/strategies/share.h"
#include "trainer/strategies/strategy_sums.h"

static int single_rewrite(struct graph *g, const struct strategy_opts *o, struct err *err)
{
	if (!g->training || !terms_wanted(o))
		return 0;
	terms_of_results(g, o);
	terms_of_statistics(g, o);
	terms_of_gradients(g, o);
	return share_failed(g, err);
}

const struct strategy strategy_single = {
	.rewrite = single_rewrite,
};
