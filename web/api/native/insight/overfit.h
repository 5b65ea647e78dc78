/* overfit.h: detects whether a stored run overfits. */
#ifndef DPT_NATIVE_OVERFIT_H
#define DPT_NATIVE_OVERFIT_H

#include "tracker/insight/learning.h"
#include "web/api/api.h"

/* Sets *ret if *ret_found becomes true. Its steps are optimiser steps if the run has the param steps_per_epoch. */
int overfit_read(struct call *c, const struct query_run *run, struct learning_overfit *ret, bool *ret_found,
		 struct err *err);

#endif
