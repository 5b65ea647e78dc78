/* SPDX-License-Identifier: Apache-2.0 */
/* strategies.c: the table of strategies, and the strategy of a single rank. */
#include "trainer/strategies/strategy_inside.h"

/* One rank has nothing to share. Where results must not depend on the number of ranks, its micro-batches are summed
 * like those of many ranks. */
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

#define STRATEGY(name, ...) extern const struct strategy strategy_##name;
#include "trainer/strategies/strategies.def"
#undef STRATEGY

const struct strategy *const strategies_table[STRATEGY_COUNT] = {
#define STRATEGY(name, ...) [STRATEGY_##name] = &strategy_##name,
#include "trainer/strategies/strategies.def"
#undef STRATEGY
};
