/* token_mix.h: several token sets as one (dataset_opts.mix). */
#ifndef DPT_DATA_FORMATS_TOKEN_MIX_H
#define DPT_DATA_FORMATS_TOKEN_MIX_H

#include "trainer/data/dataset.h"

/* open_one: opens each of the sets that o->path joins by "::". */
int token_mix_open(struct dataset **ret, const struct dataset_opts *o,
	     int (*open_one)(struct dataset **ret, const struct dataset_opts *o, struct err *err), struct err *err);

#endif
