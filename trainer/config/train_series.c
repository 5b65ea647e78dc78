/* train_series.c: the table of series.def. */
#include "trainer/config/train_series.h"

#include <string.h>

static const struct series table[SERIES_COUNT] = {
#define SERIES(group, name, of_, at_, best_, help_)                                                      \
	[SERIES_##group##_##name] = { .key = #group "/" #name, .of = SERIES_OF_##of_, .at = SERIES_AT_##at_, \
				      .best = SERIES_BEST_##best_, .help = help_ },
#include "trainer/config/series.def"
#undef SERIES
};

const struct series *series_get(enum series_id id)
{
	return &table[id];
}

const struct series *series_best(const char *key)
{
	for (int i = 0; i < SERIES_COUNT; i++)
		if (table[i].best != SERIES_BEST_NONE && !strcmp(table[i].key, key))
			return &table[i];
	return NULL;
}
