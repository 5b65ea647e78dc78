/* strategy.c: the table of strategies. */
#include "trainer/strategies/strategy.h"

#define STRATEGY(name) extern const struct strategy strategy_##name;
#include "trainer/strategies/strategies.def"
#undef STRATEGY

const struct strategy *const strategies_table[STRATEGY_COUNT] = {
#define STRATEGY(name) [STRATEGY_##name] = &strategy_##name,
#include "trainer/strategies/strategies.def"
#undef STRATEGY
};

int strategy_rewrite(const struct strategy *s, struct graph *g, const struct strategy_opts *o, struct err *err)
{
	if (s->world_max && o->world > s->world_max)
		return err_set(err, ERR_USAGE, "strategy %s takes %d rank, not %d", s->name, s->world_max, o->world);
	return s->rewrite(g, o, err);
}
